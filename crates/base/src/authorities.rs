//! The authorities that the system trusts.

/// Where systems keep them: Debian, Fedora, SUSE, Alpine.
const PLACES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The authorities that the system trusts, PEM; `None` if it has none.
pub fn system_authorities() -> Option<Vec<u8>> {
    PLACES.iter().find_map(|path| std::fs::read(path).ok())
}
