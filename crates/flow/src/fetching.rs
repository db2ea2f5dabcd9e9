//! Course of a fetch: asks the sources in order, then stores the response, confirms the stored one,
//! or passes the response through.

mod machine;
mod store;
