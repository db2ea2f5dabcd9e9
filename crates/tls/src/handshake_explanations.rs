//! Handshake explanations: the reasons of failed handshakes with an origin, in sentences for its
//! operator.

use std::io::{self, ErrorKind};

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};

/// Adds the explanation to an error of a connector.
pub fn explained(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), explain(&error))
}

/// The explanation of `error`.
fn explain(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let why = match inner {
        Some(Error::InvalidCertificate(why)) => certificate(why),
        Some(Error::AlertReceived(alert)) => received(*alert),
        Some(Error::PeerIncompatible(why)) => incompatible(why),
        Some(Error::InvalidMessage(_)) => "what it sends is not TLS",
        Some(Error::PeerMisbehaved(_)) => "it breaks the rules of TLS",
        Some(Error::NoApplicationProtocol) => {
            "it offers no version of HTTP that was asked for (ALPN)"
        }
        Some(Error::NoCertificatesPresented) => "it shows no certificate",
        Some(Error::DecryptError) => "what it sends cannot be decrypted",
        Some(other) => return format!("TLS: {other}"),
        None if error.kind() == ErrorKind::UnexpectedEof => {
            "the connection ended within the handshake"
        }
        None => return format!("TLS: {error}"),
    };
    format!("TLS: {why}")
}

fn certificate(why: &CertificateError) -> &'static str {
    use CertificateError as Why;
    match why {
        Why::UnknownIssuer => "its certificate is not signed by a trusted authority",
        Why::Expired | Why::ExpiredContext { .. } => "its certificate has expired",
        Why::NotValidYet | Why::NotValidYetContext { .. } => "its certificate is not valid yet",
        Why::NotValidForName | Why::NotValidForNameContext { .. } => {
            "its certificate is for another name"
        }
        Why::Revoked => "its certificate was revoked",
        Why::BadEncoding => "its certificate cannot be read",
        Why::BadSignature => "a signature with its key, or in its certificate, is wrong",
        Why::InvalidPurpose | Why::InvalidPurposeContext { .. } => {
            "its certificate is not one for servers"
        }
        Why::UnsupportedSignatureAlgorithmContext { .. }
        | Why::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "its certificate is signed in a way that is not supported"
        }
        Why::UnhandledCriticalExtension => {
            "its certificate has a part that must be understood and is not"
        }
        _ => {
            "its certificate is of a kind that cannot be verified, such as version 1; `verify = \
             false` takes it"
        }
    }
}

/// The explanation of an origin's alert.
fn received(alert: AlertDescription) -> &'static str {
    use AlertDescription as Alert;
    match alert {
        Alert::HandshakeFailure | Alert::InsufficientSecurity => {
            "it refuses the handshake: there is no cipher or curve in common, or it wants a \
             certificate"
        }
        Alert::ProtocolVersion => "it refuses the handshake: it speaks neither TLS 1.2 nor TLS 1.3",
        Alert::UnrecognisedName => "it does not know the name that it was asked for (`sni`)",
        Alert::CertificateRequired | Alert::NoCertificate => "it wants a certificate to be shown",
        Alert::BadCertificate
        | Alert::UnsupportedCertificate
        | Alert::CertificateRevoked
        | Alert::CertificateExpired
        | Alert::CertificateUnknown
        | Alert::UnknownCA
        | Alert::AccessDenied => "it does not accept the certificate that it was shown, or none",
        Alert::NoApplicationProtocol => "it offers no version of HTTP that was asked for (ALPN)",
        Alert::InternalError => "it reports an error of its own",
        _ => "it broke the handshake off",
    }
}

fn incompatible(why: &PeerIncompatible) -> &'static str {
    use PeerIncompatible as Why;
    match why {
        Why::NoCipherSuitesInCommon => "there is no cipher in common",
        Why::NoKxGroupsInCommon | Why::NamedGroupsExtensionRequired => {
            "there is no curve in common"
        }
        Why::NoSignatureSchemesInCommon | Why::NoCertificateRequestSignatureSchemesInCommon => {
            "there is no kind of signature in common"
        }
        Why::ServerDoesNotSupportTls12Or13 | Why::ServerTlsVersionIsDisabledByOurConfig => {
            "it speaks neither TLS 1.2 nor TLS 1.3"
        }
        Why::ExtendedMasterSecretExtensionRequired => {
            "its TLS 1.2 is without extended master secret (RFC 7627)"
        }
        _ => "it speaks TLS in a way that is not supported",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_sentences() {
        let said = |error: Error| explain(&io::Error::new(ErrorKind::InvalidData, error));
        for (error, words) in [
            (Error::InvalidCertificate(CertificateError::NotValidYet), "not valid yet"),
            (
                Error::InvalidCertificate(CertificateError::Other(rustls::OtherError(
                    std::sync::Arc::new(io::Error::other("UnsupportedCertVersion")),
                ))),
                "version 1",
            ),
            (Error::AlertReceived(AlertDescription::HandshakeFailure), "no cipher or curve"),
            (Error::AlertReceived(AlertDescription::UnexpectedMessage), "broke the handshake off"),
            (Error::PeerIncompatible(PeerIncompatible::NoKxGroupsInCommon), "no curve in common"),
            (Error::NoApplicationProtocol, "ALPN"),
        ] {
            let said = said(error);
            assert!(said.starts_with("TLS: ") && said.contains(words), "{said}");
            assert!(!said.contains("Other") && !said.contains("Unsupported"), "{said}");
        }
        let eof = io::Error::from(ErrorKind::UnexpectedEof);
        assert_eq!(explain(&eof), "TLS: the connection ended within the handshake");
    }
}
