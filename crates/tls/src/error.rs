//! Errors of certificates, and of handshakes.

use std::fmt;

/// Why a certificate, a key or an authority cannot be used. Said to the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaterialError {
    /// No certificate in the file.
    NoCertificate,
    /// No private key in the file.
    NoKey,
    /// The file is not PEM as it should be.
    Pem(String),
    /// The certificate cannot be read.
    Certificate(String),
    /// The key is of a kind that TLS does not use, or cannot be read.
    Key(String),
    /// Key and certificate belong to different pairs.
    Mismatch,
    /// The authorities cannot be used.
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

/// Why a handshake failed.
#[derive(Clone, Debug, PartialEq)]
pub enum HandshakeError {
    /// The client speaks plain HTTP.
    PlainHttp,
    /// The client names a host that has no certificate here, or none and there is no default.
    UnknownName,
    /// The client broke the protocol, or shares nothing with us, or was not let in.
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
