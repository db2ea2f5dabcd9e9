//! TLS towards clients and origins, certificates from an authority by ACME, and word on them by
//! OCSP.

#[path = "../support/mod.rs"]
mod support;

mod acme;
mod ocsp;
mod tls;
mod tls_origin;
mod tls_reload;
mod tls_sites;
