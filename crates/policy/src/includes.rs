//! Includes: a site's rules for pages that are assembled from fragments (Edge Side Includes and
//! server-side includes).

/// The pages of a site that are assembled from fragments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Includes {
    /// Pages with Edge Side Includes.
    pub esi: EsiPages,
    /// HTML pages have nginx's server-side includes.
    pub ssi: bool,
    /// Hosts of other sites that pages may include, in canonical form.
    pub hosts: Vec<Box<[u8]>>,
    /// Names of cookies that the variables of pages may contain.
    pub cookies: Vec<Box<[u8]>>,
    /// A page ends at a missing fragment, instead of continuing without it.
    pub breaks: bool,
}

/// Pages that are parsed for Edge Side Includes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EsiPages {
    /// Pages whose origin declares it: `Surrogate-Control: content="ESI/1.0"`.
    #[default]
    Announced,
    /// Declared pages, and every HTML page.
    Html,
    /// None.
    Never,
}

impl Includes {
    /// Returns true if any page of the site may have fragments.
    pub fn any(&self) -> bool {
        self.ssi || self.esi != EsiPages::Never
    }
}
