//! A site's rules for pages that are put together of others (Edge Side Includes and server-side
//! includes).

/// The pages of a site that are put together of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Includes {
    /// Those with Edge Side Includes.
    pub esi: EsiPages,
    /// Pages in HTML have nginx's server-side includes.
    pub ssi: bool,
    /// Hosts of other sites that pages may name, in canonical form.
    pub hosts: Vec<Box<[u8]>>,
    /// Names of cookies that the variables of pages may tell.
    pub cookies: Vec<Box<[u8]>>,
    /// A page ends where a fragment is missing, instead of going on without it.
    pub breaks: bool,
}

/// Pages that are read for Edge Side Includes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EsiPages {
    /// Those whose origin says so: `Surrogate-Control: content="ESI/1.0"`.
    #[default]
    Announced,
    /// Those, and every page in HTML.
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
