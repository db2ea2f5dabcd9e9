//! Tests of origins: HTTP servers and FastCGI applications, their faults and health, and files
//! served without one.

#[path = "../support/mod.rs"]
mod support;

mod accel;
mod backups;
mod countries;
mod dynamic_hosts;
mod fastcgi;
mod faults;
mod files;
mod files_fastcgi;
mod files_transport;
mod front_files;
mod header_changes;
mod health;
mod http2;
mod mirrors;
mod origins;
mod outages;
mod php;
mod redirect_maps;
mod response_rules;
mod rules;
mod sticky;
mod stopped_origin;
