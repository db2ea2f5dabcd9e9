//! Sent form: the coding and entity tag of a body that is sent in another form than it is stored
//! in.

use codec::Coding;
use codec::dictionary::DeltaCoding;

/// A form of a stored body that is not the stored one.
#[derive(Debug)]
pub struct SentForm {
    /// Its coding.
    pub coding: SentCoding,
    /// Its entity tag.
    pub tag: Option<Vec<u8>>,
}

/// The coding of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentCoding {
    /// A coding that needs no dictionary.
    Plain(Coding),
    /// A coding with a dictionary that the client has (RFC 9842).
    Delta(DeltaCoding),
}

impl SentCoding {
    /// The name in Content-Encoding; `None` for the identity.
    pub fn token(self) -> Option<&'static str> {
        match self {
            Self::Plain(Coding::Identity) => None,
            Self::Plain(coding) => Some(coding.token()),
            Self::Delta(coding) => Some(coding.token()),
        }
    }
}
