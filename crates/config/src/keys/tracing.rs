//! The collector of traces.

use super::section::{Section, keys};

pub(crate) const TRACING: Section = Section {
    title: "[tracing]",
    about: "Traces: W3C trace context towards origins, and spans for a collector (OTLP over HTTP, \
            as protobuf), made of what the log ring has. A trace that a client brings goes on, and \
            its own word counts for whether it is sampled. Without the table at the start, a \
            restart is needed to have it.",
    keys: || {
        keys! {
            "endpoint", "a URL", "required", "The collector, such as \"http://127.0.0.1:4318\" or \"https://otlp.example.com\"; the port is 4318 unless it is said, with https 443. `/v1/traces` is added.";
            "ca", "an absolute path", "the system's", "PEM file with the authorities that the collector's certificate is verified by.";
            "headers", "a table such as { api-key = { file = \"/etc/larder/api-key\" } }", "none", "Fields that each request to the collector has: names, and values or files with them: see `{ file }`. They are shown nowhere.";
            "compression", "\"gzip\" or \"none\"", "\"gzip\"", "The coding of requests.";
            "sample", "a number from 0 to 1", "0.01", "The share of requests that bring no trace for which one is begun.";
        }
    },
    later: &[],
};

pub(crate) const FIELD_FILE: Section = Section {
    title: "{ file }",
    about: "The value of a field in `[tracing] headers`, where no configuration is to have it.",
    keys: || {
        keys! {
            "file", "an absolute path", "required", "File with the whole value in one line, such as `Bearer ...`. Read at a start and at each reload, by the daemon's user or root; a file that everyone may read is refused.";
        }
    },
    later: &[],
};
