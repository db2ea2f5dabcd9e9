//! OCSP responses to be stapled to handshakes (RFC 6960): the request, and the check of a response.
//!
//! Must never accept a response that a client would reject: it must be signed by the certificate's
//! issuer or its delegate, be about this certificate, and be valid now.

use std::fmt;

use x509_cert::Certificate;
use x509_cert::der::asn1::{BitString, Null, ObjectIdentifier, OctetString};
use x509_cert::der::{self, Any, Decode, Encode};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{AuthorityInfoAccessSyntax, ExtendedKeyUsage};
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};
use x509_ocsp::{
    BasicOcspResponse, CertId, CertStatus, OcspGeneralizedTime, OcspRequest, OcspResponse,
    OcspResponseStatus, Request, ResponderId, SingleResponse, TbsRequest, Version,
};

use crate::certificate::extension;
use crate::provider::provider;
use crypto::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

const SHA1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.14.3.2.26");
const SHA2_256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
/// Authority Information Access, and OCSP in it (RFC 5280 4.2.2.1).
const ACCESS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.1.1");
const ACCESS_OCSP: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1");
/// The usual type of a response (RFC 6960 4.2.1).
const BASIC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.1");
/// The extended key usage of an issuer's delegate (RFC 6960 4.2.2.2).
const SIGNING: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.9");
const KEY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37");
/// TLS Feature, with `status_request` (RFC 7633): a client requires a staple.
const FEATURE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.1.24");
const STATUS_REQUEST: [u8; 3] = [2, 1, 5];

/// Permitted clock skew of a responder, in seconds.
const SKEW_SECS: u64 = 300;

/// The reason why a response is not stapled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StapleError {
    /// The response cannot be parsed.
    Unreadable(String),
    /// The responder returned an error status.
    NoAnswer(&'static str),
    /// The response is about other certificates.
    OtherCertificate,
    /// The certificate is revoked.
    Revoked,
    /// The responder does not know the certificate.
    Unknown,
    /// The response is not valid yet.
    Early,
    /// The response has expired.
    Late,
    /// The response has no end of validity.
    Timeless,
    /// The response is signed by neither the issuer nor a delegate.
    Signer,
    /// The signature is invalid, or of an unsupported kind.
    Signature,
}

impl fmt::Display for StapleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable(why) => return write!(f, "the response cannot be parsed: {why}"),
            Self::NoAnswer(status) => return write!(f, "the responder returned `{status}`"),
            Self::OtherCertificate => "the response is about another certificate",
            Self::Revoked => "the certificate is revoked",
            Self::Unknown => "the responder does not know the certificate",
            Self::Early => "the response is not valid yet",
            Self::Late => "the response has expired",
            Self::Timeless => "the response has no end of validity",
            Self::Signer => "the response is signed by neither the issuer nor a delegate",
            Self::Signature => "the response's signature is invalid",
        })
    }
}

impl std::error::Error for StapleError {}

impl From<der::Error> for StapleError {
    fn from(error: der::Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}

/// A response that can be stapled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staple {
    /// The response, DER.
    pub(crate) der: Vec<u8>,
    /// The end of its validity, in seconds since 1970.
    pub until_secs: u64,
}

/// The responders and the request for a certificate.
#[derive(Clone, Debug)]
pub struct Inquiry {
    /// URLs of the responders, in their order.
    pub urls: Vec<String>,
    /// The request, DER.
    pub request: Vec<u8>,
    serial: Vec<u8>,
    issuer: Box<Certificate>,
}

/// The parts of a certificate for checking its revocation.
#[derive(Debug)]
pub(crate) struct RevocationFacts {
    /// The inquiry; `None` if the certificate names no responder, or its issuer is not in the
    /// chain.
    pub(crate) inquiry: Option<Inquiry>,
    /// True if clients require a staple.
    pub(crate) must_staple: bool,
}

impl RevocationFacts {
    /// The facts of the first certificate of `chain`; the second is its issuer.
    pub(crate) fn of(chain: &[impl AsRef<[u8]>]) -> Self {
        let nothing = Self { inquiry: None, must_staple: false };
        let mut read = chain.iter().map(|der| Certificate::from_der(der.as_ref()));
        let Some(Ok(leaf)) = read.next() else { return nothing };
        let must_staple = extension(&leaf, FEATURE)
            .is_some_and(|value| value.windows(STATUS_REQUEST.len()).any(|w| w == STATUS_REQUEST));
        let Some(Ok(issuer)) = read.next() else { return Self { must_staple, ..nothing } };
        let urls = responders(&leaf);
        let inquiry = match urls.is_empty() || !is_issued_by(&leaf, &issuer) {
            true => None,
            false => question(&leaf, &issuer).ok().map(|request| Inquiry {
                urls,
                request,
                serial: leaf.tbs_certificate.serial_number.as_bytes().to_vec(),
                issuer: Box::new(issuer),
            }),
        };
        Self { inquiry, must_staple }
    }
}

/// The responders' URLs. Plain HTTP only: over HTTPS, the responder's certificate would need a
/// check, too.
fn responders(leaf: &Certificate) -> Vec<String> {
    let access = extension(leaf, ACCESS).map(AuthorityInfoAccessSyntax::from_der);
    let Some(Ok(access)) = access else { return Vec::new() };
    let url = |name: &GeneralName| match name {
        GeneralName::UniformResourceIdentifier(url) => Some(url.as_str().to_owned()),
        _ => None,
    };
    let ways = access.0.iter().filter(|way| way.access_method == ACCESS_OCSP);
    let urls = ways.filter_map(|way| url(&way.access_location));
    urls.filter(|url| url.starts_with("http://")).collect()
}

fn question(leaf: &Certificate, issuer: &Certificate) -> der::Result<Vec<u8>> {
    let (name, key) = (name_of(leaf)?, key_of(issuer));
    let sha1 = |bytes: &[u8]| OctetString::new(hashed(SHA1, bytes).unwrap_or_default());
    let hash_algorithm = AlgorithmIdentifierOwned { oid: SHA1, parameters: Some(Any::from(Null)) };
    let req_cert = CertId {
        hash_algorithm,
        issuer_name_hash: sha1(&name)?,
        issuer_key_hash: sha1(key)?,
        serial_number: leaf.tbs_certificate.serial_number.clone(),
    };
    let request_list = vec![Request { req_cert, single_request_extensions: None }];
    let (requestor_name, request_extensions) = (None, None);
    let tbs_request =
        TbsRequest { version: Version::V1, requestor_name, request_list, request_extensions };
    OcspRequest { tbs_request, optional_signature: None }.to_der()
}

/// The issuer's name as encoded in `certificate`.
fn name_of(certificate: &Certificate) -> der::Result<Vec<u8>> {
    certificate.tbs_certificate.issuer.to_der()
}

fn key_of(certificate: &Certificate) -> &[u8] {
    certificate.tbs_certificate.subject_public_key_info.subject_public_key.raw_bytes()
}

fn hashed(algorithm: ObjectIdentifier, bytes: &[u8]) -> Option<Vec<u8>> {
    let algorithm = match algorithm {
        SHA1 => &SHA1_FOR_LEGACY_USE_ONLY,
        SHA2_256 => &SHA256,
        _ => return None,
    };
    Some(digest(algorithm, bytes).as_ref().to_vec())
}

impl Inquiry {
    /// Checks a response at `now_secs`, in seconds since 1970.
    ///
    /// # Errors
    /// The reason why it must not be stapled.
    pub fn judge(&self, answer: &[u8], now_secs: u64) -> Result<Staple, StapleError> {
        let response = OcspResponse::from_der(answer)?;
        if response.response_status != OcspResponseStatus::Successful {
            return Err(StapleError::NoAnswer(status_name(response.response_status)));
        }
        let bytes = response.response_bytes.filter(|bytes| bytes.response_type == BASIC);
        let bytes = bytes.ok_or(StapleError::NoAnswer("successful, and nothing that is known"))?;
        let basic = BasicOcspResponse::from_der(bytes.response.as_bytes())?;
        self.check_signature(&basic, now_secs)?;
        let mut single = basic.tbs_response_data.responses.iter();
        let single =
            single.find(|single| self.is_about(single)).ok_or(StapleError::OtherCertificate)?;
        match single.cert_status {
            CertStatus::Good(_) => {}
            CertStatus::Revoked(_) => return Err(StapleError::Revoked),
            CertStatus::Unknown(_) => return Err(StapleError::Unknown),
        }
        if secs(single.this_update) > now_secs.saturating_add(SKEW_SECS) {
            return Err(StapleError::Early);
        }
        let until_secs = single.next_update.map(secs).ok_or(StapleError::Timeless)?;
        if until_secs <= now_secs {
            return Err(StapleError::Late);
        }
        Ok(Staple { der: answer.to_vec(), until_secs })
    }

    fn is_about(&self, single: &SingleResponse) -> bool {
        let id = &single.cert_id;
        let is = |own: &OctetString, bytes: &[u8]| {
            hashed(id.hash_algorithm.oid, bytes).is_some_and(|sum| own.as_bytes() == sum)
        };
        let name = self.issuer.tbs_certificate.subject.to_der().unwrap_or_default();
        id.serial_number.as_bytes() == self.serial
            && is(&id.issuer_name_hash, &name)
            && is(&id.issuer_key_hash, key_of(&self.issuer))
    }

    /// Checks that the response is signed by the issuer, or by a delegate of the issuer (RFC 6960
    /// 4.2.2.2).
    fn check_signature(&self, basic: &BasicOcspResponse, now_secs: u64) -> Result<(), StapleError> {
        let who = &basic.tbs_response_data.responder_id;
        let delegates = basic.certs.iter().flatten().filter(|own| self.delegates(own, now_secs));
        let mut signers = std::iter::once(&*self.issuer).chain(delegates);
        let signer = signers.find(|own| is_called(own, who)).ok_or(StapleError::Signer)?;
        let signed = basic.tbs_response_data.to_der()?;
        let key = &signer.tbs_certificate.subject_public_key_info;
        match is_signed(&signed, &basic.signature_algorithm, &basic.signature, key) {
            true => Ok(()),
            false => Err(StapleError::Signature),
        }
    }

    /// Returns true if the issuer has delegated responses to the holder of `certificate`.
    fn delegates(&self, certificate: &Certificate, now_secs: u64) -> bool {
        let validity = &certificate.tbs_certificate.validity;
        let from = validity.not_before.to_unix_duration().as_secs();
        let until = validity.not_after.to_unix_duration().as_secs();
        let purposes = extension(certificate, KEY_USAGE).map(ExtendedKeyUsage::from_der);
        let may_sign = matches!(purposes, Some(Ok(purposes)) if purposes.0.contains(&SIGNING));
        may_sign && (from..=until).contains(&now_secs) && is_issued_by(certificate, &self.issuer)
    }
}

fn is_called(certificate: &Certificate, who: &ResponderId) -> bool {
    match who {
        ResponderId::ByName(name) => certificate.tbs_certificate.subject == *name,
        ResponderId::ByKey(sum) => {
            hashed(SHA1, key_of(certificate)).as_deref() == Some(sum.as_bytes())
        }
    }
}

fn is_issued_by(certificate: &Certificate, issuer: &Certificate) -> bool {
    let key = &issuer.tbs_certificate.subject_public_key_info;
    certificate.tbs_certificate.issuer == issuer.tbs_certificate.subject
        && certificate.tbs_certificate.to_der().is_ok_and(|signed| {
            is_signed(&signed, &certificate.signature_algorithm, &certificate.signature, key)
        })
}

/// Returns true if `signature` is that of `key` over `signed`, by an algorithm that handshakes
/// accept, too.
fn is_signed(
    signed: &[u8],
    algorithm: &AlgorithmIdentifierOwned,
    signature: &BitString,
    key: &SubjectPublicKeyInfoOwned,
) -> bool {
    let (Some(by), Some(of)) = (identifier(algorithm), identifier(&key.algorithm)) else {
        return false;
    };
    let Some(signature) = signature.as_bytes() else { return false };
    provider().signature_verification_algorithms.all.iter().any(|own| {
        own.signature_alg_id().as_ref() == by
            && own.public_key_alg_id().as_ref() == of
            && own.verify_signature(key.subject_public_key.raw_bytes(), signed, signature).is_ok()
    })
}

/// The content of an algorithm's identifier, without its tag and its short length.
fn identifier(algorithm: &AlgorithmIdentifierOwned) -> Option<Vec<u8>> {
    let der = algorithm.to_der().ok()?;
    match der.as_slice() {
        [0x30, length, contents @ ..] if usize::from(*length) == contents.len() => {
            Some(contents.to_vec())
        }
        _ => None,
    }
}

fn secs(time: OcspGeneralizedTime) -> u64 {
    time.0.to_unix_duration().as_secs()
}

fn status_name(status: OcspResponseStatus) -> &'static str {
    match status {
        OcspResponseStatus::Successful => "successful",
        OcspResponseStatus::MalformedRequest => "malformedRequest",
        OcspResponseStatus::InternalError => "internalError",
        OcspResponseStatus::TryLater => "tryLater",
        OcspResponseStatus::SigRequired => "sigRequired",
        OcspResponseStatus::Unauthorized => "unauthorized",
    }
}
