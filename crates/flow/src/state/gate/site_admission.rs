//! Site admission: the effect of the gates on an admitted request: the fields that are removed, and
//! those that are set for the origin.

use std::sync::Arc;

use message::{HeaderId, Request};
use policy::headers::FieldName;

use super::user::User;

/// The admission of a request to a site.
#[derive(Debug, Default)]
pub(crate) struct SiteAdmission {
    /// The user, by the name in the credentials.
    pub(crate) user: Option<Arc<User>>,
    /// Its responses are for one user alone.
    pub(crate) is_personal: bool,
    /// The password is not sent to the origin.
    pub(crate) keeps_password: bool,
    /// Fields that only gates may set.
    pub(crate) own: Vec<FieldName>,
    /// Fields and their values, in the order of the gates.
    fields: Vec<(FieldName, Box<[u8]>)>,
}

impl SiteAdmission {
    /// Sets values of `field` for the origin, unless another gate has set it: two routes that a
    /// path may mean can share a gate.
    pub(crate) fn add<'a>(
        &mut self,
        field: &FieldName,
        values: impl IntoIterator<Item = &'a [u8]>,
    ) {
        if self.own.iter().any(|own| own.is_spelt(field.as_bytes())) {
            return;
        }
        self.own.push(field.clone());
        self.fields.extend(values.into_iter().map(|value| (field.clone(), value.into())));
    }

    /// Removes from `request` the password if it is not for the origin, and the fields that only
    /// gates may set.
    pub(crate) fn take_off(&self, request: &mut Request) {
        let headers = &mut request.headers;
        if self.keeps_password {
            headers.remove(HeaderId::Authorization);
        }
        if !self.own.is_empty() {
            headers.retain(|field| !self.own.iter().any(|own| own.is_spelt(field.name)));
        }
    }

    /// Writes the gates' fields into `request`. Returns true if the response is personal.
    pub(crate) fn tell(&self, request: &mut Request) -> bool {
        for (name, value) in &self.fields {
            request.headers.push_named(name.as_bytes(), value);
        }
        self.is_personal
    }
}
