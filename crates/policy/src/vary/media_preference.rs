//! Media preference of a client, by Accept (RFC 9110 12.5.1): which image formats it knows, or
//! which of a site's media types it likes best.

use std::fmt;

use message::header::is_token;
use message::list::members;

use super::weight::weighted;

/// Media types of one list, at most: each is compared with each range of a request.
pub const MEDIA_TYPES_MAX: usize = 16;

/// The choice that Accept makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaPreference {
    /// The image formats that a client names: AVIF, WebP, both or neither; and if it names HTML,
    /// as browsers do for pages.
    Images,
    /// One of these media types; the first is the default.
    Types(MediaTypes),
}

/// Media types, each with the Accept that asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaTypes(Box<[MediaChoice]>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct MediaChoice {
    name: Box<[u8]>,
    /// Length of the main type with its slash.
    main: usize,
    accept: Box<[u8]>,
}

/// The reason for which a list of media types was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaTypesError {
    /// The text is not a media type.
    Type(String),
    /// Browsers name images that they know, in no order of preference.
    Image(String),
    /// The type is listed twice.
    Twice(String),
    /// There is no choice between fewer than two, and too many cost too much.
    Number,
}

impl fmt::Display for MediaTypesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(name) => {
                write!(f, "\"{name}\" is not a media type such as \"text/html\", in lower case")
            }
            Self::Image(name) => {
                write!(
                    f,
                    "\"{name}\" is an image: write `accept = \"images\"` in a route for images"
                )
            }
            Self::Twice(name) => write!(f, "\"{name}\" is listed twice"),
            Self::Number => write!(f, "lists 2 to {MEDIA_TYPES_MAX} types, the default first"),
        }
    }
}

impl std::error::Error for MediaTypesError {}

/// Forms of Accept for images: bits for HTML, AVIF and WebP. As browsers weigh them.
const IMAGE_FORMS: [&[u8]; 8] = [
    b"*/*",
    b"image/webp,*/*;q=0.8",
    b"image/avif,*/*;q=0.8",
    b"image/avif,image/webp,*/*;q=0.8",
    b"text/html,*/*;q=0.8",
    b"text/html,image/webp,*/*;q=0.8",
    b"text/html,image/avif,*/*;q=0.8",
    b"text/html,image/avif,image/webp,*/*;q=0.8",
];

/// The Accept of an `EventSource`. It stays, since such a request gets a response of its own.
const EVENTS: &[u8] = b"text/event-stream";

impl MediaPreference {
    /// The choice between a page and its text for programs that read it.
    pub fn markdown() -> Self {
        let of = |name: &str| MediaChoice::new(name);
        Self::Types(MediaTypes([of("text/html"), of("text/markdown")].into()))
    }

    /// The choice between media types.
    ///
    /// # Errors
    /// If a name is malformed, an image or listed twice, or there are too few or too many.
    pub fn types(names: &[&str]) -> Result<Self, MediaTypesError> {
        for (at, name) in names.iter().enumerate() {
            if !is_media_type(name) {
                return Err(MediaTypesError::Type((*name).to_owned()));
            }
            if name.starts_with("image/") {
                return Err(MediaTypesError::Image((*name).to_owned()));
            }
            if names[..at].contains(name) {
                return Err(MediaTypesError::Twice((*name).to_owned()));
            }
        }
        if !(2..=MEDIA_TYPES_MAX).contains(&names.len()) {
            return Err(MediaTypesError::Number);
        }
        Ok(Self::Types(MediaTypes(names.iter().map(|name| MediaChoice::new(name)).collect())))
    }

    /// The form for a request with these lines of Accept.
    pub(super) fn choose<'a>(&self, lines: impl Iterator<Item = &'a [u8]> + Clone) -> &[u8] {
        let first = lines.clone().next();
        if first.is_some_and(|first| first.eq_ignore_ascii_case(EVENTS)) {
            return EVENTS;
        }
        match self {
            Self::Images => IMAGE_FORMS[image_bits(lines)],
            Self::Types(types) => types.choose(lines),
        }
    }
}

impl fmt::Display for MediaPreference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Types(types) = self else { return f.write_str("images") };
        for (at, choice) in types.0.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{}", choice.name.escape_ascii())?;
        }
        Ok(())
    }
}

/// Formats that are not named are not known to the client: browsers that cannot show AVIF send
/// `image/*` and `*/*`, too.
fn image_bits<'a>(lines: impl Iterator<Item = &'a [u8]>) -> usize {
    let mut bits = 0;
    for (range, weight) in members(lines).filter_map(weighted) {
        let is = |name: &[u8]| range.eq_ignore_ascii_case(name);
        let bit = match () {
            () if weight == 0 => 0,
            () if is(b"image/webp") => 1,
            () if is(b"image/avif") => 2,
            () if is(b"text/html") || is(b"application/xhtml+xml") => 4,
            () => 0,
        };
        bits |= bit;
    }
    bits
}

impl MediaChoice {
    fn new(name: &str) -> Self {
        let main = name.find('/').map_or(0, |slash| slash + 1);
        // Better another type than 406: the origin may have only one.
        let accept = format!("{name},*/*;q=0.8").into_bytes().into();
        Self { name: name.as_bytes().into(), main, accept }
    }

    /// The precision with which `range` means this type: 2 by its name, 1 by its main type, 0 as
    /// any; `None` if it does not. Parameters of the range count for nothing.
    fn precision(&self, range: &[u8]) -> Option<u8> {
        if range.eq_ignore_ascii_case(&self.name) {
            return Some(2);
        }
        let main = range.strip_suffix(b"*")?;
        match main {
            b"*/" => Some(0),
            _ => main.eq_ignore_ascii_case(&self.name[..self.main]).then_some(1),
        }
    }
}

/// The range of an Accept that means a type most precisely.
#[derive(Clone, Copy)]
struct MeantRange {
    precision: u8,
    weight: u16,
    position: usize,
}

impl MediaTypes {
    /// The most precise range for a type gives its weight (RFC 9110 12.5.1). The highest weight
    /// wins; among equals a type that is named, then the type whose range comes first, then the
    /// first of the list. Without an acceptable type, the default.
    fn choose<'a>(&self, lines: impl Iterator<Item = &'a [u8]>) -> &[u8] {
        let mut meant = [None::<MeantRange>; MEDIA_TYPES_MAX];
        for (position, (range, weight)) in members(lines).filter_map(weighted).enumerate() {
            for (choice, meant) in self.0.iter().zip(&mut meant) {
                let Some(precision) = choice.precision(range) else { continue };
                if meant.is_none_or(|known| precision > known.precision) {
                    *meant = Some(MeantRange { precision, weight, position });
                }
            }
        }
        let (mut best, mut most) = (0, None::<MeantRange>);
        for (at, range) in meant.iter().enumerate().take(self.0.len()) {
            let Some(range) = range.filter(|range| range.weight > 0) else { continue };
            let rank = |of: MeantRange| (of.weight, of.precision, usize::MAX - of.position);
            if most.is_none_or(|most| rank(range) > rank(most)) {
                (best, most) = (at, Some(range));
            }
        }
        &self.0[best].accept
    }
}

fn is_media_type(name: &str) -> bool {
    let Some((main, sub)) = name.split_once('/') else { return false };
    let is_part = |part: &str| is_token(part.as_bytes()) && !part.contains('*');
    is_part(main) && is_part(sub) && !name.bytes().any(|byte| byte.is_ascii_uppercase())
}
