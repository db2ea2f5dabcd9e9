//! The Hyper Text Caching Protocol (RFC 2756), as Squid and similar caches speak it: CLR, a purge
//! for many caches at once, and TST, a query whether a response is stored.
//!
//! It must not touch a socket or decide about trust. Signatures (AUTH) are not verified and sources
//! can be forged, so it is for networks that prevent that.

#[cfg(test)]
mod tests;

/// The longest datagram, by its length field.
pub const DATAGRAM_BYTES: usize = u16::MAX as usize;

/// The longest TST that is sent: Squid reads no more of a datagram (`htcpRecv`).
const TEST_BYTES: usize = 8192;

/// The numbers of operations (RFC 2756 3.2).
const TST: u8 = 1;
const CLR: u8 = 4;
/// Bytes before a message's data: length and version.
const HEAD: usize = 4;
/// Bytes of data before the operation's: length, opcode and response, flags, transaction.
const DATA_HEAD: usize = 8;

/// The order of the bits in opcode and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bits {
    /// The first bit is the highest, as in RFC 2756.
    Rfc,
    /// The first bit is the lowest, as in Squid on most machines, and in MediaWiki.
    Squid,
}

/// The operation of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A query whether a usable response is stored (TST).
    Test,
    /// A purge of stored responses (CLR).
    Clear,
}

/// An HTCP request for a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HtcpRequest<'a> {
    /// Its operation.
    pub operation: Operation,
    /// The method of the HTTP request.
    pub method: &'a [u8],
    /// Its URL, absolute.
    pub url: &'a [u8],
    /// Its fields, each line with CRLF.
    pub fields: &'a [u8],
    /// The sender expects a response.
    pub wants_answer: bool,
    /// The number of the request, which the response repeats.
    pub transaction: u32,
    bits: Bits,
    minor: u8,
}

/// The reason why a datagram is no [`HtcpRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Lengths in it do not fit each other.
    Malformed,
    /// A version other than 0.
    Version,
    /// Another operation, or a response.
    Other,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Malformed => "malformed",
            Self::Version => "of an unknown version",
            Self::Other => "neither TST nor CLR",
        })
    }
}

impl std::error::Error for Error {}

/// Removes and returns a number of two bytes.
fn number(bytes: &mut &[u8]) -> Option<u16> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u16::from_be_bytes(*first))
}

/// Removes and returns a counted string (COUNTSTR).
fn counted<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = number(bytes)?;
    let (text, rest) = bytes.split_at_checked(usize::from(len))?;
    *bytes = rest;
    Some(text)
}

/// A CLR for an absolute URL, which expects a response. `None` if the URL is too long.
pub fn clear(url: &[u8], transaction: u32) -> Option<Vec<u8>> {
    // Reason 0 comes first.
    request(CLR, &[0, 0], b"GET", url, b"", transaction)
}

/// A TST for an absolute URL with these fields, each line with CRLF. `None` if they are too long
/// for a datagram that all caches read.
pub fn test(method: &[u8], url: &[u8], fields: &[u8], transaction: u32) -> Option<Vec<u8>> {
    let datagram = request(TST, &[], method, url, fields, transaction)?;
    (datagram.len() <= TEST_BYTES).then_some(datagram)
}

/// A request of this operation that expects a response. `before` precedes its specifier: method,
/// URL, version and fields.
fn request(
    opcode: u8,
    before: &[u8],
    method: &[u8],
    url: &[u8],
    fields: &[u8],
    transaction: u32,
) -> Option<Vec<u8>> {
    let counted =
        |text: &[u8]| Some([&u16::try_from(text.len()).ok()?.to_be_bytes(), text].concat());
    let parts = [counted(method)?, counted(url)?, counted(b"HTTP/1.1")?, counted(fields)?];
    let specifier = [before, &parts.concat()].concat();
    let data = u16::try_from(DATA_HEAD + specifier.len()).ok()?;
    let all = data.checked_add(HEAD as u16 + 2)?;
    let mut out = all.to_be_bytes().to_vec();
    out.extend([0, 1]);
    out.extend(data.to_be_bytes());
    // F1 is 0, RR is set.
    out.extend([opcode << 4, 2]);
    out.extend(transaction.to_be_bytes());
    out.extend(specifier);
    out.extend([0, 2]);
    Some(out)
}

/// Reads the response to a CLR: its transaction, and whether the neighbour has purged.
pub fn cleared(datagram: &[u8]) -> Option<(u32, bool)> {
    let answer = HtcpResponse::read(datagram, CLR)?;
    // 0: it has been removed; 2: it was absent.
    Some((answer.transaction, !answer.has_failed && matches!(answer.response, 0 | 2)))
}

/// Reads the response to a TST: its transaction, and whether the neighbour has the response.
pub fn tested(datagram: &[u8]) -> Option<(u32, bool)> {
    let answer = HtcpResponse::read(datagram, TST)?;
    // 0: it is stored, and a description follows; 1: it is not.
    Some((answer.transaction, !answer.has_failed && answer.response == 0))
}

/// The part of a response that all operations share.
struct HtcpResponse {
    transaction: u32,
    response: u8,
    /// The response concerns the whole message (F1, MO), which was not understood or is rejected.
    has_failed: bool,
}

impl HtcpResponse {
    /// Reads a response to this operation.
    fn read(datagram: &[u8], opcode: u8) -> Option<Self> {
        let mut rest = datagram;
        if usize::from(number(&mut rest)?) != datagram.len() {
            return None;
        }
        let ([0, minor @ 0..=1], mut rest) = rest.split_first_chunk::<2>()? else { return None };
        let data = usize::from(number(&mut rest)?);
        let (code, flags) = (*rest.first()?, *rest.get(1)?);
        // The flag for a response distinguishes the two orders of bits, as in requests.
        let (code, response, has_failed) = match (minor, flags & 1 != 0, flags & 0x80 != 0) {
            (_, true, _) => (code >> 4, code & 0xf, flags & 2 != 0),
            (0, false, true) => (code & 0xf, code >> 4, flags & 0x40 != 0),
            _ => return None,
        };
        let transaction = rest.get(2..6)?.try_into().ok().map(u32::from_be_bytes)?;
        let is_it = code == opcode && data >= DATA_HEAD;
        is_it.then_some(Self { transaction, response, has_failed })
    }
}

impl<'a> HtcpRequest<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// It is malformed, or another operation.
    pub fn read(datagram: &'a [u8]) -> Result<Self, Error> {
        let mut rest = datagram;
        let len = number(&mut rest).ok_or(Error::Malformed)?;
        if usize::from(len) != datagram.len() {
            return Err(Error::Malformed);
        }
        let ([major, minor], rest) = rest.split_first_chunk().ok_or(Error::Malformed)?;
        // Version 0.1 always has the RFC's order of bits.
        if *major != 0 || *minor > 1 {
            return Err(Error::Version);
        }
        // Both lengths include their own two bytes; AUTH is the rest.
        let data_len = number(&mut { rest }).ok_or(Error::Malformed)?;
        let (data, auth) = rest.split_at_checked(data_len.into()).ok_or(Error::Malformed)?;
        if number(&mut { auth }).is_none_or(|len| usize::from(len) != auth.len()) {
            return Err(Error::Malformed);
        }
        let (head, mut data) = data.split_first_chunk::<DATA_HEAD>().ok_or(Error::Malformed)?;
        let (code, flags) = (head[2], head[3]);
        let transaction = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        let (bits, opcode, wants_answer) = match (code >> 4, code & 0xf, minor) {
            // Response 0; flags end with F1 and RR.
            (opcode @ (TST | CLR), 0, _) if flags & 1 == 0 => (Bits::Rfc, opcode, flags & 2 != 0),
            // Squid's order. In the RFC's order it would be NOP with a response.
            (0, opcode @ (TST | CLR), 0) if flags & 0x80 == 0 => {
                (Bits::Squid, opcode, flags & 0x40 != 0)
            }
            _ => return Err(Error::Other),
        };
        let operation = if opcode == TST { Operation::Test } else { Operation::Clear };
        let mut read = || {
            if operation == Operation::Clear {
                // The reason.
                number(&mut data)?;
            }
            // Method, URL, version and fields.
            let (method, url) = (counted(&mut data)?, counted(&mut data)?);
            counted(&mut data)?;
            let fields = counted(&mut data)?;
            data.is_empty().then_some((method, url, fields))
        };
        let (method, url, fields) = read().ok_or(Error::Malformed)?;
        let minor = *minor;
        Ok(Self { operation, method, url, fields, wants_answer, transaction, bits, minor })
    }

    /// The response, by whether something was stored.
    pub fn answer(&self, was_there: bool) -> Vec<u8> {
        // The number of empty texts that follow (RFC 2756 6.2, 6.4).
        let (opcode, response, texts) = match (self.operation, was_there) {
            // The fields of the response, of the body and of the cache; or of the cache alone.
            (Operation::Test, true) => (TST, 0, 3),
            (Operation::Test, false) => (TST, 1, 1),
            // 0: it has been removed; 2: it was absent.
            (Operation::Clear, true) => (CLR, 0, 0),
            (Operation::Clear, false) => (CLR, 2, 0),
        };
        let (code, flags) = match self.bits {
            Bits::Rfc => (opcode << 4 | response, 1),
            Bits::Squid => (opcode | response << 4, 0x80),
        };
        let data = DATA_HEAD as u8 + 2 * texts;
        let [a, b, c, d] = self.transaction.to_be_bytes();
        let mut out =
            vec![0, HEAD as u8 + data + 2, 0, self.minor, 0, data, code, flags, a, b, c, d];
        out.resize(out.len() + 2 * usize::from(texts), 0);
        out.extend([0, 2]);
        out
    }
}
