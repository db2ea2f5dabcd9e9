//! `[health]`, `[metrics]`, `[varnish_cli]` and `[htcp]`.

use super::section::{Section, TEXTS, keys, pair};

pub(crate) const HEALTH: Section = Section {
    title: "[health]",
    about: "What a kubelet or a balancer is told that asks for the daemon's health. Where it \
            listens is read when the daemon starts.",
    keys: || {
        keys! {
            "listen", "a string", "none", "Where `/healthz` and `/readyz` are answered and nothing else, as in `listen`: addresses of any interface, such as \":6090\", without TLS. No token is asked for. They are on the admin listener in any case.";
            "origins_down", "\"ready\" or \"not-ready\"", "\"ready\"", "What `/readyz` and `health_check` answer while there is a site whose origins are all down and of which nothing is stored that may answer: 200, or 503.";
        }
    },
    later: &[],
};

pub(crate) const METRICS: Section = Section {
    title: "[metrics]",
    about: "An address of its own for Prometheus, where `/metrics` is answered and nothing else, to \
            clients with a token, a certificate, or both where both are named here. Where it \
            listens is read when the daemon starts; a reload reads the rest again, and \
            certificates are read again within a second of a change.",
    keys: || {
        let mut keys = keys! {
            "listen", "a string", "required", "Where it listens, as in `listen`: \":6091 tls\" on any interface; without `tls` only on addresses of this machine's own, where nobody on the way can read the token.";
            "token_file", "an absolute path", "none", "File with the token that clients bring in `Authorization: Bearer`: one line of at least 32 letters and digits. The daemon's user reads it, or root; a file that everyone may read is refused.";
            "client_ca", "an absolute path", "none", "PEM file with the authorities that sign clients' certificates; with it, clients need one.";
        };
        keys.append(&mut pair());
        keys.iter_mut().filter(|key| key.name == "cert").for_each(|key| {
            key.default = "those of `[tls]`".into();
        });
        keys
    },
    later: &[],
};

pub(crate) const VARNISH_CLI: Section = Section {
    title: "[varnish_cli]",
    about: "A port that speaks Varnish's CLI, for `varnishadm` and plugins. What is banned there is \
            banned for all sites. Where it listens is read when the daemon starts; a reload reads \
            the secret again, and without the table closes the port.",
    keys: || {
        keys! {
            "listen", "a string", "required", "Where it listens, as in `listen`: Varnish's usual port is 6082.";
            "secret", "an absolute path, or `\"none\"`", "made by the daemon", "File with the secret, as varnishd's `-S`: clients show that they know it, every byte of it. Without the key the daemon makes one at its start and writes it to `_.secret` beside the admin socket, for its own user only. `none` is for ports that only this machine can connect to: all of its users may then ban, load programs and with them read files as the daemon.";
        }
    },
    later: &[],
};

pub(crate) const HTCP: Section = Section {
    title: "[htcp]",
    about: "A UDP port that takes HTCP (RFC 2756): CLR, a purge of one URL of whichever site its host \
            names, in one datagram, and TST, the question whether something is stored. Signatures \
            are not verified and a datagram's source can be forged: for networks that keep \
            strangers' out. Read when the daemon starts.",
    keys: || {
        keys! {
            "listen", "a string", "required", "Where it listens, as in `listen`: HTCP's usual port is 4827. A multicast group's address is joined.";
            "allow", TEXTS, "[\"127.0.0.0/8\", \"::1\"]", "Addresses or networks whose datagrams count; to others nothing is said.";
            "interface", "a string", "as the routes say", "The network interface, such as `eth1`, through which a multicast group that `listen` names is joined.";
        }
    },
    later: &[],
};
