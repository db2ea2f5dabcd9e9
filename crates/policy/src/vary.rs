//! Vary by meaning: request fields in which clients say the same in hundreds of ways are brought
//! into one of few forms, before the key is made and the origin is asked.
//!
//! The form replaces the field in the canonical request. So the variants that a response's Vary
//! makes are selected by it, and the origin sees nothing else: one client's spelling must never
//! decide about a response for others. A form read again is the same form, because nodes of a
//! cluster and fragments of a page send requests that are in canonical form already.

mod cookie_values;
mod device;
mod language;
mod media_preference;
mod weight;

use message::{HeaderBlock, HeaderId, Request};

pub use self::cookie_values::CookieValues;
pub use self::device::{DEVICE_FIELD, DeviceClasses};
pub use self::language::{LANGUAGES_MAX, Languages};
pub use self::media_preference::{MEDIA_TYPES_MAX, MediaPreference};

/// The fields of a route's requests that are brought into few forms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VaryRules {
    /// The languages that Accept-Language chooses from.
    pub languages: Option<Languages>,
    /// The choice by Accept.
    pub media: Option<MediaPreference>,
    /// The classes of devices that User-Agent chooses from.
    pub devices: Option<DeviceClasses>,
    /// Cookies in the key, each with its permitted values.
    pub cookies: Vec<CookieValues>,
}

impl VaryRules {
    /// Returns true if no field is changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Brings the fields of a request that is looked up into their forms. A `personal` request
    /// keeps its User-Agent: applications bind sessions to it. The replaced fields are kept for
    /// logs.
    pub fn normalise(&self, request: &mut Request, personal: bool) {
        let Request { headers, replaced, .. } = request;
        if !self.cookies.is_empty() && headers.contains(HeaderId::Cookie) {
            cookie_values::normalise(&self.cookies, headers);
        }
        if self.languages.is_none() && self.media.is_none() && self.devices.is_none() {
            return;
        }
        let mut fields = ReplacedFields { headers, sent: replaced.get_or_insert_default() };
        if let Some(languages) = &self.languages {
            let tag = languages.choose(fields.headers.values(HeaderId::AcceptLanguage));
            fields.replace(HeaderId::AcceptLanguage, tag);
        }
        if let Some(media) = &self.media {
            let form = media.choose(fields.headers.values(HeaderId::Accept));
            fields.replace(HeaderId::Accept, form);
        }
        if let Some(devices) = self.devices {
            devices.normalise(&mut fields, personal);
        }
    }

    /// The names of fields that are brought into forms, without Cookie.
    pub fn fields(&self) -> Vec<&'static str> {
        let devices = self.devices.is_some();
        let all = [
            (self.languages.is_some(), HeaderId::AcceptLanguage.name()),
            (self.media.is_some(), HeaderId::Accept.name()),
            (devices, HeaderId::UserAgent.name()),
            (devices, DEVICE_FIELD),
        ];
        all.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name).collect()
    }
}

/// The fields of a request, and those that forms have replaced.
struct ReplacedFields<'a> {
    headers: &'a mut HeaderBlock,
    sent: &'a mut HeaderBlock,
}

impl ReplacedFields<'_> {
    /// Replaces the field by `form`. What was sent is kept once: a request may be read twice.
    fn replace(&mut self, id: HeaderId, form: &[u8]) {
        if !self.sent.contains(id) {
            self.headers.values(id).for_each(|value| self.sent.push(id, value));
            if !self.sent.contains(id) {
                self.sent.push(id, b"");
            }
        }
        self.headers.set_as(id, id.name().as_bytes(), form);
    }
}

#[cfg(test)]
mod tests;
