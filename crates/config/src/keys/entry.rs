//! Gates of a site.

use super::section::{BOOLEAN, DURATION, Section, TEXTS, keys};

pub(crate) const BASIC_AUTH: Section = Section {
    title: "[site.basic_auth]",
    about: "Users with passwords (RFC 7617), asked for before anything else of the site is looked \
            at; also in a route, where `false` lets everybody in. Who has shown a password is \
            remembered for `password_keep`, so that hits stay hits.",
    keys: || {
        keys! {
            "file", "an absolute path", "required", "The users, a line each, as `htpasswd -B` makes them: bcrypt, apr1 or SHA-1. Read at a start and at each reload, at most `users_bytes` long.";
            "realm", "a string", "\"restricted\"", "What clients are told that the password is for.";
            "forward", BOOLEAN, "false", "Whether the site's origin gets the password, too. Its responses are then for one user alone.";
            "user_field", "a field name", "none", "The field in which the origin is told the user, such as `Remote-User`; a client's own is removed. Responses are then for one user alone, unless `[site.cache] key_headers` names the field.";
        }
    },
    later: &[],
};

pub(crate) const FORWARD_AUTH: Section = Section {
    title: "[site.forward_auth]",
    about: "Another server that is asked whether a request may enter, as by nginx's \
            `auth_request` and the `forward_auth` of Caddy and Traefik; also in a route, where \
            `false` lets everybody in. It gets a GET with the fields of the client's request and \
            X-Forwarded-Method, -Proto, -Host, -Uri and -For. With a 2xx it lets in; any other \
            answer is the client's. Where it cannot be asked nobody is let in (502, 503 or 504).",
    keys: || {
        keys! {
            "origin", "the name of an origin, or a URL", "required", "The server.";
            "path", "a path", "required", "The target of the question, such as `/verify`.";
            "copy", TEXTS, "none", "Fields of its answer that the site's origin gets with the request, such as `Remote-User`; a client's own are removed. Responses are then for one user alone, unless `[site.cache] key_headers` names all of them. Not beside a VCL.";
            "keep", DURATION, "\"0s\"", "How long a yes is remembered, in each core. With `0s` the server is asked for every request, hits too.";
            "keep_for", "\"url\" or \"site\"", "\"url\"", "Whether a yes that is remembered is for the one URL and method, or for all of the site (or route).";
            "by", TEXTS, "[\"Cookie\", \"Authorization\"]", "Fields by whose values requests are told apart where a yes is remembered: all that the server goes by. The client's address always counts.";
        }
    },
    later: &[],
};
