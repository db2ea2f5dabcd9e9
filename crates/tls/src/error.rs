//! Errors of certificates, and of handshakes.

use std::fmt;

/// The reason why a certificate, a key or an authority is invalid, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaterialError {
    /// No certificate in the file.
    NoCertificate,
    /// No private key in the file.
    NoKey,
    /// The file is not valid PEM.
    Pem(String),
    /// The certificate is malformed.
    Certificate(String),
    /// The key is malformed, or of a kind that TLS does not use.
    Key(String),
    /// Key and certificate belong to different pairs.
    Mismatch,
    /// The authorities are invalid.
    Authorities(String),
}

impl fmt::Display for MaterialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCertificate => f.write_str("there is no certificate in it"),
            Self::NoKey => f.write_str("there is no private key in it"),
            Self::Pem(why) => write!(f, "it is not PEM: {why}"),
            Self::Certificate(why) => write!(f, "the certificate cannot be read: {why}"),
            Self::Key(why) => write!(f, "the private key cannot be used: {why}"),
            Self::Mismatch => f.write_str("the key does not belong to the certificate"),
            Self::Authorities(why) => write!(f, "the authorities cannot be used: {why}"),
        }
    }
}

impl std::error::Error for MaterialError {}

/// The reason why a handshake failed.
#[derive(Clone, Debug, PartialEq)]
pub enum HandshakeError {
    /// The client speaks plain HTTP.
    PlainHttp,
    /// The client names a host without a certificate here, or none, and there is no default.
    UnknownName,
    /// The client violated the protocol, has no algorithm in common, or was rejected.
    Tls(rustls::Error),
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PlainHttp => f.write_str("plain HTTP on a TLS port"),
            Self::UnknownName => f.write_str("no certificate for this name"),
            Self::Tls(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HandshakeError {}
