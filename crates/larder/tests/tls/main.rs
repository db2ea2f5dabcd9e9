//! Tests of TLS towards clients and origins, certificates from an authority by ACME, and OCSP
//! stapling.

#[path = "../support/mod.rs"]
mod support;

mod acme;
mod ocsp;
mod tls;
mod tls_origin;
mod tls_reload;
mod tls_sites;
