//! Identity of a client by its certificate, in the forms that origins get.

use data_encoding::BASE64;
use rustls::pki_types::CertificateDer;

use crate::certificate::{self, common_name, distinguished_name};
use crypto::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// A client with a valid certificate.
#[derive(Debug)]
pub struct Identity {
    der: Box<[u8]>,
    subject: Box<str>,
    common_name: Option<Box<str>>,
    fingerprint: Box<str>,
}

impl Identity {
    /// The identity in `certificate`, which was verified; `None` if it cannot be parsed.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let read = certificate::read(certificate).ok()?;
        let subject = &read.tbs_certificate.subject;
        let sum = digest(&SHA1_FOR_LEGACY_USE_ONLY, certificate);
        let fingerprint: String = sum.as_ref().iter().map(|b| format!("{b:02x}")).collect();
        Some(Self {
            subject: distinguished_name(subject).into(),
            common_name: common_name(subject).map(Into::into),
            fingerprint: fingerprint.into(),
            der: certificate.as_ref().into(),
        })
    }

    /// The subject in the form of RFC 4514, the last part first (nginx's `$ssl_client_s_dn`). Bytes
    /// that are not printable ASCII are escaped.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The subject's first common name, if it is text.
    pub fn common_name(&self) -> Option<&str> {
        self.common_name.as_deref()
    }

    /// SHA-1 of the certificate in lower-case hexadecimal (nginx's `$ssl_client_fingerprint`).
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The certificate as DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The certificate as the value of Client-Cert (RFC 9440 2.1): base64 between colons.
    pub fn client_cert(&self) -> Vec<u8> {
        format!(":{}:", BASE64.encode(&self.der)).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn identity(names: &[(DnType, &str)]) -> Identity {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in names {
            params.distinguished_name.push(kind.clone(), *value);
        }
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        Identity::of(certificate.der()).expect("a certificate")
    }

    #[test]
    fn a_subject_is_written_from_its_end_and_escaped() {
        let subject = identity(&[
            (DnType::CountryName, "DE"),
            (DnType::OrganizationName, "Müller, Söhne\r\n"),
            (DnType::CommonName, " #1+\"x\" "),
        ]);
        let expected = "CN=\\ #1\\+\\\"x\\\"\\ ,O=M\\C3\\BCller\\, S\\C3\\B6hne\\0D\\0A,C=DE";
        assert_eq!(subject.subject(), expected);
        let odd = identity(&[(DnType::CustomDnType(vec![1, 2, 3, 4]), "x")]);
        // The whole value, DER: UTF8String, one byte, `x`.
        assert_eq!(odd.subject(), "1.2.3.4=#0C0178");
        let mail =
            identity(&[(DnType::CustomDnType(vec![1, 2, 840, 113_549, 1, 9, 1]), "a@b.test")]);
        assert_eq!(mail.subject(), "emailAddress=a@b.test");
    }
}
