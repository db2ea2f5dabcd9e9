//! `[varnish_cli]` and `[htcp]`.

use super::{Section, TEXTS};

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
