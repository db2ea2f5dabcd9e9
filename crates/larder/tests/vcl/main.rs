//! Tests of programs in VCL, compared with varnishd, and of Varnish's command line.

#[path = "../support/mod.rs"]
mod support;

mod tls_cert;
mod varnish_cli;
mod varnish_cli_alike;
mod vcl_beside;
mod vcl_cli;
mod vcl_connection;
mod vcl_differential;
mod vcl_generated;
mod vcl_newer;
mod vcl_reports;
mod vcl_serve;
mod vcl_sites;
