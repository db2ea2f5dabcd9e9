//! Site program: the part that a site's VCL has in it.

use crate::model::{PlacedPath, SiteConfig};

impl SiteConfig {
    /// The VCL that decides for the site.
    pub fn program(&self) -> Option<&PlacedPath> {
        self.vcl.as_ref().filter(|_| !self.is_beside)
    }

    /// The VCL that stands beside the site's settings.
    pub fn extra(&self) -> Option<&PlacedPath> {
        self.vcl.as_ref().filter(|_| self.is_beside)
    }
}
