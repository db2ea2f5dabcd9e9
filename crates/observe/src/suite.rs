//! Cipher suites of TLS connections: two bytes in a record, shown by OpenSSL's names as nginx does.

use std::borrow::Cow;

/// A cipher suite by its number in IANA's registry. 0, which no handshake selects, means a
/// connection without TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CipherSuite(pub u16);

/// OpenSSL's names of the cipher suites that Larder can negotiate.
const NAMES: [(u16, &str); 9] = [
    (0x1301, "TLS_AES_128_GCM_SHA256"),
    (0x1302, "TLS_AES_256_GCM_SHA384"),
    (0x1303, "TLS_CHACHA20_POLY1305_SHA256"),
    (0xc02b, "ECDHE-ECDSA-AES128-GCM-SHA256"),
    (0xc02c, "ECDHE-ECDSA-AES256-GCM-SHA384"),
    (0xc02f, "ECDHE-RSA-AES128-GCM-SHA256"),
    (0xc030, "ECDHE-RSA-AES256-GCM-SHA384"),
    (0xcca8, "ECDHE-RSA-CHACHA20-POLY1305"),
    (0xcca9, "ECDHE-ECDSA-CHACHA20-POLY1305"),
];

impl CipherSuite {
    /// The TLS version. TLS 1.3 has cipher suites of its own (RFC 8446 B.4). `None` without TLS.
    pub fn protocol(self) -> Option<&'static str> {
        match self.0 {
            0 => None,
            0x1300..=0x13ff => Some("TLSv1.3"),
            _ => Some("TLSv1.2"),
        }
    }

    /// OpenSSL's name of the cipher suite, or its number; `None` without TLS.
    pub fn name(self) -> Option<Cow<'static, str>> {
        let known = NAMES.iter().find(|(number, _)| *number == self.0);
        match (self.0, known) {
            (0, _) => None,
            (_, Some((_, name))) => Some((*name).into()),
            // OpenSSL writes unknown suites like this.
            (number, None) => Some(format!("0x{number:04X}").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_says_suite_and_version() {
        for (number, protocol, name) in [
            (0x1302, Some("TLSv1.3"), Some("TLS_AES_256_GCM_SHA384")),
            (0xc02f, Some("TLSv1.2"), Some("ECDHE-RSA-AES128-GCM-SHA256")),
            (0xc0a1, Some("TLSv1.2"), Some("0xC0A1")),
            (0, None, None),
        ] {
            let suite = CipherSuite(number);
            assert_eq!((suite.protocol(), suite.name().as_deref()), (protocol, name));
        }
    }
}
