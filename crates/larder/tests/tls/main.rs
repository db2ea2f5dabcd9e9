//! TLS towards clients and origins, certificates by ACME, and their status by OCSP.

#[path = "../support/mod.rs"]
mod support;

mod acme;
mod ocsp;
mod tls;
mod tls_origin;
mod tls_reload;
mod tls_sites;
