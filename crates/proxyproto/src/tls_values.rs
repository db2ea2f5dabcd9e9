//! TLS values of a version 2 header, about TLS between the client and the balancer
//! (`proxy-protocol.txt`, 2.2).

use crate::v2;

/// The protocol selected by ALPN.
const ALPN: u8 = 0x01;
/// The requested host name.
const AUTHORITY: u8 = 0x02;
/// TLS: flags, the result of the verification, and nested values.
const SSL: u8 = 0x20;
const SSL_VERSION: u8 = 0x21;
const SSL_CN: u8 = 0x22;
const SSL_CIPHER: u8 = 0x23;
const SSL_SIG_ALG: u8 = 0x24;
const SSL_KEY_ALG: u8 = 0x25;

/// The client uses TLS.
const CLIENT_SSL: u8 = 0x01;
/// The client has sent a certificate on this connection.
const CLIENT_CERT_CONN: u8 = 0x02;
/// The client has sent a certificate in this TLS session.
const CLIENT_CERT_SESS: u8 = 0x04;

/// TLS between the client and the balancer. Texts are as received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsValues<'a> {
    /// The protocol selected by ALPN.
    pub alpn: Option<&'a [u8]>,
    /// The requested host name.
    pub authority: Option<&'a [u8]>,
    /// The client uses TLS.
    pub is_tls: bool,
    /// The client has sent a certificate on this connection.
    pub has_cert_connection: bool,
    /// The client has sent a certificate in this TLS session.
    pub has_cert_session: bool,
    /// The result of verifying it: 0 if it is valid.
    pub verify_result: u32,
    /// Version of TLS.
    pub version: Option<&'a [u8]>,
    /// Common name of the client's certificate.
    pub client_cert_cn: Option<&'a [u8]>,
    /// Cipher suite.
    pub cipher: Option<&'a [u8]>,
    /// Signature of the server's certificate.
    pub cert_sign: Option<&'a [u8]>,
    /// Kind of the key of the server's certificate.
    pub cert_key: Option<&'a [u8]>,
}

/// The TLS values of `header`, which [`read`](crate::read()) has found complete; `None` if there
/// are none. The first of repeated values counts.
pub fn secured(header: &[u8]) -> Option<TlsValues<'_>> {
    let mut found = None;
    for (kind, value) in values(v2::values(header)?) {
        let found = found.get_or_insert_with(TlsValues::default);
        match kind {
            ALPN => put(&mut found.alpn, value),
            AUTHORITY => put(&mut found.authority, value),
            SSL => found.read(value),
            _ => {}
        }
    }
    found.filter(|found| *found != TlsValues::default())
}

impl<'a> TlsValues<'a> {
    fn read(&mut self, value: &'a [u8]) {
        let Some((&[client, a, b, c, d], rest)) = value.split_first_chunk() else { return };
        self.is_tls = client & CLIENT_SSL != 0;
        self.has_cert_connection = client & CLIENT_CERT_CONN != 0;
        self.has_cert_session = client & CLIENT_CERT_SESS != 0;
        self.verify_result = u32::from_be_bytes([a, b, c, d]);
        for (kind, value) in values(rest) {
            match kind {
                SSL_VERSION => put(&mut self.version, value),
                SSL_CN => put(&mut self.client_cert_cn, value),
                SSL_CIPHER => put(&mut self.cipher, value),
                SSL_SIG_ALG => put(&mut self.cert_sign, value),
                SSL_KEY_ALG => put(&mut self.cert_key, value),
                _ => {}
            }
        }
    }
}

fn put<'a>(slot: &mut Option<&'a [u8]>, value: &'a [u8]) {
    slot.get_or_insert(value);
}

/// The complete values, one after the other.
fn values(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&[kind, high, low], rest) = bytes.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([high, low])))?;
        bytes = rest;
        Some((kind, value))
    })
}
