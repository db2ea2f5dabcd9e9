//! The way in which a request enters a site: what its gates take off it, and what they tell the
//! origin.

use std::sync::Arc;

use message::{HeaderId, Request};
use policy::headers::FieldName;

use super::user::User;

/// The way in which a request enters a site.
#[derive(Debug, Default)]
pub(crate) struct SiteAdmission {
    /// The user, by the name that the password was shown for.
    pub(crate) user: Option<Arc<User>>,
    /// Its responses are for one user alone.
    pub(crate) is_personal: bool,
    /// The password stays here.
    pub(crate) keeps_password: bool,
    /// Fields that are the gates' to say.
    pub(crate) own: Vec<FieldName>,
    /// Their values, in the order of the gates.
    told: Vec<(FieldName, Box<[u8]>)>,
}

impl SiteAdmission {
    /// Has the origin told these values of `field`, unless another gate has a say in it already: of
    /// two routes that a path may mean both may have the same gate.
    pub(crate) fn add<'a>(
        &mut self,
        field: &FieldName,
        values: impl IntoIterator<Item = &'a [u8]>,
    ) {
        if self.own.iter().any(|own| own.is_spelt(field.as_bytes())) {
            return;
        }
        self.own.push(field.clone());
        self.told.extend(values.into_iter().map(|value| (field.clone(), value.into())));
    }

    /// Takes off `request` what is not for the site, and what only the gates may say.
    pub(crate) fn take_off(&self, request: &mut Request) {
        let headers = &mut request.headers;
        if self.keeps_password {
            headers.remove(HeaderId::Authorization);
        }
        if !self.own.is_empty() {
            headers.retain(|field| !self.own.iter().any(|own| own.is_spelt(field.name)));
        }
    }

    /// Says in `request` what the gates have to say. Returns true if the response is for one user
    /// alone.
    pub(crate) fn tell(&self, request: &mut Request) -> bool {
        for (name, value) in &self.told {
            request.headers.push_named(name.as_bytes(), value);
        }
        self.is_personal
    }
}
