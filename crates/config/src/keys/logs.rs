//! The logs.

use super::section::{BOOLEAN, Section, TEXTS, keys};

pub(crate) const ACCESS_LOG: Section = Section {
    title: "[access_log]",
    about: "The access log, when more than its path is to be said.",
    keys: || {
        keys! {
            "path", "a path, \"stdout\" or \"syslog\"", "\"stdout\"", "Where it goes; files are appended to. `syslog` is the machine's syslog daemon at `/dev/log`, `syslog:/path` one at another socket, `syslog:192.0.2.1:514` one by UDP.";
            "format", "\"combined\", \"json\" or a format", "\"combined\"", "NCSA combined lines, one JSON object per line, or lines of your own: with the formatters of varnishncsa and Apache (`%h`, `%{X-Id}i`), the variables of nginx (`$remote_addr`, `$http_x_id`), or both.";
            "escape", "\"default\" or \"json\"", "\"default\"", "How values are written in a format of your own: as varnishncsa or nginx would, or so that they fit between JSON's quotes.";
            "secrets", BOOLEAN, "false", "Whether a format of your own has values of Authorization, Proxy-Authorization, Cookie, Set-Cookie, X-Api-Key, X-Auth-Token, X-CSRF-Token, X-XSRF-Token and X-Amz-Security-Token as they are. Without it they are masked.";
        }
    },
    later: &[],
};

pub(crate) const ERROR_LOG: Section = Section {
    title: "[error_log]",
    about: "What the daemon says of itself, and what origins and programs write besides responses. A reload changes \
            the level, not the path.",
    keys: || {
        keys! {
            "path", "a path, \"stderr\" or \"syslog\"", "\"stderr\"", "Where it goes; a file is appended to, readable for its owner and group. `syslog` is as for `[access_log]`. Under systemd lines on standard error have their levels for the journal.";
            "level", "\"error\", \"warn\", \"notice\", \"info\", \"debug\"; \"emerg\", \"alert\" or \"crit\"", "\"debug\"", "The least weighty lines that are written. `debug` is for what a VCL logs so.";
        }
    },
    later: &[],
};

pub(crate) const LOG_RING: Section = Section {
    title: "[log_ring]",
    about: "The log ring, when more than its size is to be said. Read when the daemon starts; a reload does not \
            change it.",
    keys: || {
        keys! {
            "size", "a size such as \"32MiB\"", "\"32MiB\"", "Memory of all cores' rings together, taken as it is written to; a core has at least 1MiB. It comes on top of `[memory] size`.";
            "folder", "an absolute path", "a folder that goes with the admin socket", "Where it is, open to the daemon's user alone; on a file system in memory (tmpfs), or writing may have to wait for a disk. By default beside the admin socket, or below /dev/shm where that is on a disk.";
            "headers", TEXTS, "[\"Referer\", \"User-Agent\"]", "Request fields whose values are kept, at most 16.";
        }
    },
    later: &[],
};
