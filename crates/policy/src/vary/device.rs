//! Device class of a client, by User-Agent.
//!
//! The origin of a request that is looked up sees the class in `X-Device`, and the User-Agent of a
//! usual browser of the class in place of the client's. With the client's own, an application that
//! draws the line elsewhere would make a page for one class that is served to the other, and a
//! visitor could choose which. User agent client hints would say the same again, and go.

use memchr::memmem;
use message::HeaderId;

use super::ReplacedFields;

/// The field that tells the origin the class of a device.
pub const DEVICE_FIELD: &str = "X-Device";

/// The classes that a site tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceClasses {
    /// Phones, and all others.
    Two,
    /// Phones, tablets, and all others.
    Three,
}

/// A class of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeviceClass {
    Mobile,
    Tablet,
    Desktop,
}

/// The prefix of user agent client hints.
const HINTS: &[u8] = b"sec-ch-ua";

impl DeviceClasses {
    /// The names of the classes.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Two => &["mobile", "desktop"],
            Self::Three => &["mobile", "tablet", "desktop"],
        }
    }

    /// Writes the class of the client, and takes away what says more about it. A `personal` request
    /// keeps User-Agent.
    pub(super) fn normalise(self, fields: &mut ReplacedFields<'_>, personal: bool) {
        let class = self.class_of(fields.headers.value(HeaderId::UserAgent).unwrap_or_default());
        if !personal {
            fields.replace(HeaderId::UserAgent, class.user_agent());
        }
        let ReplacedFields { headers, sent } = fields;
        if headers.contains(HeaderId::Other) {
            headers.retain(|field| {
                let goes = field.id == HeaderId::Other && tells_device(field.name);
                if goes && !is_spelt(field.name, DEVICE_FIELD.as_bytes()) {
                    sent.push_as(field.id, field.name, field.value);
                }
                !goes
            });
        }
        headers.push_named(DEVICE_FIELD.as_bytes(), class.name().as_bytes());
    }

    pub(super) fn class_of(self, agent: &[u8]) -> DeviceClass {
        match DeviceClass::of(agent) {
            DeviceClass::Tablet if self == Self::Two => DeviceClass::Desktop,
            class => class,
        }
    }
}

impl DeviceClass {
    /// The class of a client with this User-Agent. Browsers of phones have `Mobi` in theirs, those
    /// of Android tablets have no `Mobi`, and the iPad's is a tablet's if it is named. iPads since
    /// 2019 call themselves Macintosh.
    fn of(agent: &[u8]) -> Self {
        let has = |text: &[u8]| memmem::find(agent, text).is_some();
        let is_mobile = has(b"Mobi");
        if has(b"iPad")
            || has(b"PlayBook")
            || has(b"Kindle")
            || has(b"Tablet") && !has(b"Tablet PC")
            || !is_mobile && (has(b"Android") || has(b"Silk/"))
        {
            return Self::Tablet;
        }
        let is_phone =
            is_mobile || has(b"iPhone") || has(b"iPod") || has(b"Opera Mini") || has(b"BlackBerry");
        if is_phone { Self::Mobile } else { Self::Desktop }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Mobile => "mobile",
            Self::Tablet => "tablet",
            Self::Desktop => "desktop",
        }
    }

    /// The User-Agent of a usual browser of the class: Chrome's, which has been the same for all
    /// devices of a class since 2023, but for the version.
    fn user_agent(self) -> &'static [u8] {
        match self {
            Self::Mobile => {
                b"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) \
                  Chrome/142.0.0.0 Mobile Safari/537.36"
            }
            Self::Tablet => {
                b"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) \
                  Chrome/142.0.0.0 Safari/537.36"
            }
            Self::Desktop => {
                b"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
                  Chrome/142.0.0.0 Safari/537.36"
            }
        }
    }
}

/// Returns true if a field of this name tells the client's device.
fn tells_device(name: &[u8]) -> bool {
    name.get(..HINTS.len()).is_some_and(|start| is_spelt(start, HINTS))
        || is_spelt(name, DEVICE_FIELD.as_bytes())
}

/// Returns true if both names are one to applications that read `_` as `-`.
fn is_spelt(name: &[u8], known: &[u8]) -> bool {
    let plain = |byte: &u8| if *byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    name.iter().map(plain).eq(known.iter().map(plain))
}
