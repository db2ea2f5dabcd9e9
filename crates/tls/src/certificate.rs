//! Certificate parsing (RFC 5280), in this module only.
//!
//! It must not decide about trust, which is the verifier's task, and accepts any valid form:
//! operators' own authorities number and name certificates as they like.

use std::net::IpAddr;

use x509_cert::certificate::{CertificateInner, Profile, Raw};
use x509_cert::der::asn1::{BmpString, ObjectIdentifier, PrintableString, TeletexString};
use x509_cert::der::asn1::{Ia5StringRef, Utf8StringRef};
use x509_cert::der::{Any, Decode, Encode, Tag, TagNumber, Tagged};
use x509_cert::ext::pkix::AuthorityKeyIdentifier;
use x509_cert::name::Name;

/// A certificate, parsed with no more requirements than its form.
pub(crate) type Certificate = CertificateInner<Raw>;

/// Subject Alternative Name (RFC 5280 4.2.1.6).
const ALTERNATIVES: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");
/// Authority Key Identifier (RFC 5280 4.2.1.1).
const AUTHORITY_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.35");
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// GeneralName's `dNSName` and `iPAddress`.
const DNS_NAME: TagNumber = TagNumber::N2;
const IP_ADDRESS: TagNumber = TagNumber::N7;

/// Short names of a name's attributes: those of RFC 4514 3, then OpenSSL's.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("2.5.4.3", "CN"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.6", "C"),
    ("2.5.4.9", "street"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.15", "businessCategory"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.44", "generationQualifier"),
    ("2.5.4.46", "dnQualifier"),
    ("2.5.4.65", "pseudonym"),
    ("2.5.4.97", "organizationIdentifier"),
];

/// Parses a certificate.
///
/// # Errors
/// The fault in its form.
pub(crate) fn read(der: &[u8]) -> Result<Certificate, String> {
    Certificate::from_der(der).map_err(|error| error.to_string())
}

/// The value of an extension, DER.
pub(crate) fn extension<P: Profile>(
    certificate: &CertificateInner<P>,
    id: ObjectIdentifier,
) -> Option<&[u8]> {
    let extensions = certificate.tbs_certificate.extensions.as_ref()?;
    extensions.iter().find(|own| own.extn_id == id).map(|own| own.extn_value.as_bytes())
}

/// Hosts of a certificate: DNS names in lower case, and addresses. Other kinds of names are
/// ignored.
///
/// # Errors
/// If the list of names is malformed.
pub(crate) fn hosts(certificate: &Certificate) -> Result<(Vec<Box<str>>, Vec<IpAddr>), String> {
    let (mut names, mut addresses) = (Vec::new(), Vec::new());
    let Some(list) = extension(certificate, ALTERNATIVES) else { return Ok((names, addresses)) };
    let list = Vec::<Any>::from_der(list).map_err(|error| error.to_string())?;
    for name in &list {
        match name.tag() {
            Tag::ContextSpecific { number: DNS_NAME, .. } => {
                if let Ok(text) = Ia5StringRef::new(name.value()) {
                    names.push(text.as_str().to_ascii_lowercase().into());
                }
            }
            Tag::ContextSpecific { number: IP_ADDRESS, .. } => {
                addresses.extend(address(name.value()));
            }
            _ => {}
        }
    }
    Ok((names, addresses))
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(Into::into),
        _ => <[u8; 16]>::try_from(bytes).ok().map(Into::into),
    }
}

/// Start and end of a certificate's validity, in seconds since 1970.
pub(crate) fn validity(certificate: &Certificate) -> (u64, u64) {
    let validity = &certificate.tbs_certificate.validity;
    let [start, end] = [&validity.not_before, &validity.not_after];
    (start.to_unix_duration().as_secs(), end.to_unix_duration().as_secs())
}

/// The identifier of the issuer's key, and the serial number, as they are encoded.
pub(crate) fn issuer_key_and_serial(certificate: &Certificate) -> Option<(Vec<u8>, Vec<u8>)> {
    let key = AuthorityKeyIdentifier::from_der(extension(certificate, AUTHORITY_KEY)?).ok()?;
    let serial = certificate.tbs_certificate.serial_number.as_bytes().to_vec();
    Some((key.key_identifier?.into_bytes(), serial))
}

/// The first common name in `name`, if it is text.
pub(crate) fn common_name(name: &Name) -> Option<String> {
    let mut attributes = name.0.iter().flat_map(|part| part.0.iter());
    attributes.find_map(|attribute| match attribute.oid {
        COMMON_NAME => text(&attribute.value),
        _ => None,
    })
}

/// A name in the form of RFC 4514, the last part first. Bytes that are not printable ASCII are
/// escaped.
pub(crate) fn distinguished_name(name: &Name) -> String {
    let attribute = |kind: ObjectIdentifier, value: &Any| {
        let kind = kind.to_string();
        let short = SHORT_NAMES.iter().find(|(id, _)| *id == kind).map(|(_, short)| *short);
        match (short, text(value)) {
            (Some(short), Some(text)) => format!("{short}={}", escaped(&text)),
            // RFC 4514 2.4: values that are not strings, or have no short name, in hexadecimal.
            (short, _) => {
                let bytes = value.to_der().unwrap_or_default();
                let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
                format!("{}=#{hex}", short.unwrap_or(&kind))
            }
        }
    };
    let parts = name.0.iter().rev().map(|part| {
        let attributes = part.0.iter().map(|own| attribute(own.oid, &own.value));
        attributes.collect::<Vec<_>>().join("+")
    });
    parts.collect::<Vec<_>>().join(",")
}

/// An attribute's value, if it is text.
fn text(value: &Any) -> Option<String> {
    match value.tag() {
        Tag::Utf8String => Utf8StringRef::new(value.value()).ok().map(|text| text.to_string()),
        Tag::PrintableString => {
            PrintableString::new(value.value()).ok().map(|text| text.to_string())
        }
        Tag::Ia5String => Ia5StringRef::new(value.value()).ok().map(|text| text.to_string()),
        Tag::TeletexString => TeletexString::new(value.value()).ok().map(|text| text.to_string()),
        Tag::BmpString => {
            BmpString::from_ucs2(value.value().to_vec()).ok().map(|text| text.to_string())
        }
        _ => None,
    }
}

/// RFC 4514 2.4, with all bytes escaped that a header field could not carry.
fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let last = value.len().wrapping_sub(1);
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => out.extend(['\\', byte.into()]),
            b'#' | b' ' if at == 0 => out.extend(['\\', byte.into()]),
            b' ' if at == last => out.push_str("\\ "),
            b' '..=b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("\\{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, CertificateParams, CustomExtension, IsCa, Issuer, KeyIdMethod, KeyPair,
        SerialNumber,
    };

    use super::*;

    fn issued(change: impl FnOnce(&mut CertificateParams)) -> Certificate {
        let authority_key = KeyPair::generate().expect("a key");
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_identifier_method = KeyIdMethod::PreSpecified(vec![0xC0, 0xFF, 0xEE]);
        let authority = Issuer::new(authority, authority_key);
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        change(&mut params);
        let certificate = params.signed_by(&key, &authority).expect("a certificate");
        read(certificate.der()).expect("it can be read")
    }

    #[test]
    fn a_certificate_is_known_by_its_issuer_s_key_and_its_serial_as_encoded() {
        let certificate = issued(|params| {
            params.serial_number = Some(SerialNumber::from_slice(&[0xCA, 0xFE]));
            params.use_authority_key_identifier_extension = true;
        });
        // RFC 9773 4.1: the serial with the zero that keeps it positive.
        let expected = (vec![0xC0, 0xFF, 0xEE], vec![0, 0xCA, 0xFE]);
        assert_eq!(issuer_key_and_serial(&certificate), Some(expected));
        assert_eq!(issuer_key_and_serial(&issued(|_| {})), None);
    }

    #[test]
    fn names_of_other_kinds_and_names_that_are_no_text_are_left_out() {
        // A list with an address of 4 bytes, a directory name, a name that is not ASCII, and a
        // valid one in capitals.
        let list = [
            &[0x30, 0x16][..],
            &[0x87, 4, 192, 0, 2, 1],
            &[0xA5, 2, 0x30, 0],
            &[0x82, 2, 0xC3, 0xBC],
            &[0x82, 6, b'A', b'.', b'T', b'E', b'S', b'T'],
        ];
        let list = CustomExtension::from_oid_content(&[2, 5, 29, 17], list.concat());
        let certificate = issued(|params| params.custom_extensions = vec![list]);
        let (names, addresses) = hosts(&certificate).expect("a list");
        assert_eq!((names, addresses), (vec!["a.test".into()], vec![[192, 0, 2, 1].into()]));
        let broken = CustomExtension::from_oid_content(&[2, 5, 29, 17], vec![0x30, 9]);
        assert!(hosts(&issued(|params| params.custom_extensions = vec![broken])).is_err());
    }

    #[test]
    fn serials_of_operators_own_authorities_may_be_of_any_length() {
        let long = SerialNumber::from_slice(&[0x7F; 40]);
        let certificate = issued(|params| params.serial_number = Some(long));
        assert_eq!(certificate.tbs_certificate.serial_number.as_bytes(), [0x7F; 40]);
    }
}
