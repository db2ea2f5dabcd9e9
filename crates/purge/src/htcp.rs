//! The Hyper Text Caching Protocol (RFC 2756), as far as caches are purged by it: CLR, by which
//! MediaWiki, and caches of the kind of Squid, tell many others at once what is not true any more.
//!
//! Pure: it never touches a socket, and never decides who may be believed. Signatures (AUTH) are
//! not verified, and a datagram's source can be forged: it is for networks that let nobody do that.

#[cfg(test)]
mod tests;

/// Longest datagram, by its length's field.
pub const DATAGRAM_BYTES: usize = u16::MAX as usize;

/// CLR's number (RFC 2756 3.2).
const CLR: u8 = 4;
/// Bytes before a message's data: length, version.
const HEAD: usize = 4;
/// Bytes of data before those of the operation: length, opcode and response, flags, transaction.
const DATA_HEAD: usize = 8;

/// The order of the bits within opcode and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bits {
    /// The first is the highest, as RFC 2756 means it.
    Rfc,
    /// The first is the lowest, as Squid had it on most machines, and MediaWiki has after it.
    Squid,
}

/// A request that what is stored for a URL be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clear<'a> {
    /// The method of the request whose response is meant.
    pub method: &'a [u8],
    /// Its URL, absolute.
    pub url: &'a [u8],
    /// The sender wants an answer.
    pub wants_answer: bool,
    /// The number of the request, which the answer repeats.
    pub transaction: u32,
    bits: Bits,
    minor: u8,
}

/// Why a datagram is no [`Clear`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Lengths in it do not fit each other.
    Malformed,
    /// A version other than 0.
    Version,
    /// Another operation, or an answer.
    Other,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Malformed => "malformed",
            Self::Version => "of an unknown version",
            Self::Other => "not CLR",
        })
    }
}

impl std::error::Error for Error {}

/// Takes a number of two bytes off.
fn number(bytes: &mut &[u8]) -> Option<u16> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u16::from_be_bytes(*first))
}

/// Takes a length and as many bytes off (COUNTSTR).
fn counted<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = number(bytes)?;
    let (text, rest) = bytes.split_at_checked(usize::from(len))?;
    *bytes = rest;
    Some(text)
}

/// A CLR for an absolute URL, as a datagram that wants an answer; `None` if the URL is too long for
/// one.
pub fn clear(url: &[u8], transaction: u32) -> Option<Vec<u8>> {
    let counted =
        |text: &[u8]| Some([&u16::try_from(text.len()).ok()?.to_be_bytes(), text].concat());
    // Reason 0, then method, URL, version and no fields.
    let specifier =
        [vec![0, 0], counted(b"GET")?, counted(url)?, counted(b"HTTP/1.1")?, counted(b"")?]
            .concat();
    let data = u16::try_from(DATA_HEAD + specifier.len()).ok()?;
    let all = data.checked_add(HEAD as u16 + 2)?;
    let mut out = all.to_be_bytes().to_vec();
    out.extend([0, 1]);
    out.extend(data.to_be_bytes());
    // CLR; F1 is 0, RR is set.
    out.extend([CLR << 4, 2]);
    out.extend(transaction.to_be_bytes());
    out.extend(specifier);
    out.extend([0, 2]);
    Some(out)
}

/// Reads the answer to a CLR: its transaction, and whether the neighbour has done it.
pub fn cleared(datagram: &[u8]) -> Option<(u32, bool)> {
    let mut rest = datagram;
    if usize::from(number(&mut rest)?) != datagram.len() {
        return None;
    }
    let ([0, minor @ 0..=1], mut rest) = rest.split_first_chunk::<2>()? else { return None };
    let data = usize::from(number(&mut rest)?);
    let (code, flags) = (*rest.first()?, *rest.get(1)?);
    // The flag that says "an answer" tells the two orders of bits apart, as in requests.
    let (code, response, has_failed) = match (minor, flags & 1 != 0, flags & 0x80 != 0) {
        (_, true, _) => (code >> 4, code & 0xf, flags & 2 != 0),
        (0, false, true) => (code & 0xf, code >> 4, flags & 0x40 != 0),
        _ => return None,
    };
    let transaction = rest.get(2..6)?.try_into().ok().map(u32::from_be_bytes)?;
    // 0: it is gone now; 2: it was not there. With F1 (MO) they are about the whole message.
    let is_done = !has_failed && matches!(response, 0 | 2);
    (code == CLR && data >= DATA_HEAD).then_some((transaction, is_done))
}

impl<'a> Clear<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// If it is not one, or another operation.
    pub fn read(datagram: &'a [u8]) -> Result<Self, Error> {
        let mut rest = datagram;
        let len = number(&mut rest).ok_or(Error::Malformed)?;
        if usize::from(len) != datagram.len() {
            return Err(Error::Malformed);
        }
        let ([major, minor], rest) = rest.split_first_chunk().ok_or(Error::Malformed)?;
        // 0.1 is the one in which the bits have the RFC's order for sure.
        if *major != 0 || *minor > 1 {
            return Err(Error::Version);
        }
        // Both parts count their length's own two bytes; AUTH fills what the data leave.
        let data_len = number(&mut { rest }).ok_or(Error::Malformed)?;
        let (data, auth) = rest.split_at_checked(data_len.into()).ok_or(Error::Malformed)?;
        if number(&mut { auth }).is_none_or(|len| usize::from(len) != auth.len()) {
            return Err(Error::Malformed);
        }
        let (head, mut data) = data.split_first_chunk::<DATA_HEAD>().ok_or(Error::Malformed)?;
        let (code, flags) = (head[2], head[3]);
        let transaction = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        let (bits, wants_answer) = match (code, minor) {
            // Opcode CLR, response 0; flags end with F1 and RR.
            (0x40, _) if flags & 1 == 0 => (Bits::Rfc, flags & 2 != 0),
            // The same from the other end. In the RFC's order it would be NOP with a response.
            (0x04, 0) if flags & 0x80 == 0 => (Bits::Squid, flags & 0x40 != 0),
            _ => return Err(Error::Other),
        };
        let mut read = || {
            // Reason, then method, URL, version and fields.
            number(&mut data)?;
            let (method, url) = (counted(&mut data)?, counted(&mut data)?);
            counted(&mut data)?;
            counted(&mut data)?;
            data.is_empty().then_some((method, url))
        };
        let (method, url) = read().ok_or(Error::Malformed)?;
        Ok(Self { method, url, wants_answer, transaction, bits, minor: *minor })
    }

    /// The answer: whether something was there.
    pub fn answer(&self, was_there: bool) -> [u8; HEAD + DATA_HEAD + 2] {
        // 0: it is gone now; 2: it was not there (RFC 2756 6.4).
        let response = if was_there { 0 } else { 2 };
        let (code, flags) = match self.bits {
            Bits::Rfc => (CLR << 4 | response, 1),
            Bits::Squid => (CLR | response << 4, 0x80),
        };
        let [a, b, c, d] = self.transaction.to_be_bytes();
        [0, 14, 0, self.minor, 0, 8, code, flags, a, b, c, d, 0, 2]
    }
}
