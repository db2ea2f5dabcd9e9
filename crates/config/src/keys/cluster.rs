//! `[cluster]`.

use super::section::{COUNT, DURATION, PATHS, Section, TEXTS, keys};

pub(crate) const CLUSTER: Section = Section {
    title: "[cluster]",
    about: "Several Larders that tell each other what they invalidate, over NATS with JetStream. Read \
            when the daemon starts; a reload does not change it. The limits that begin with \
            `cluster_` are its, too.",
    keys: || {
        keys! {
            "servers", TEXTS, "required", "URLs of NATS servers, such as `nats://10.0.0.1:4222` or `tls://nats-1:4222`: one at least, the others are learned from it.";
            "name", "a string", "the host's name", "The node's name, which no other node has: letters, digits, `-` and `_`. Other characters of the host's name become `-`.";
            "prefix", "a string", "\"larder\"", "The word that subjects and streams begin with: nodes with the same one in the same account are one cluster.";
            "mode", "\"invalidate\", \"share\" or \"shield\"", "\"invalidate\"", "What nodes share: what is invalidated, or also what they store. Then each key has an owner among the nodes, which fetches for all of them: a node that shields, while there is one.";
            "peer", "an IP address and a port", "none", "Where the node answers the others about what it stores, and what they are told; needed to share. Nobody else is let in there: the nodes know each other's certificates, which they make anew at every start, by their cards.";
            "acknowledge", "\"local\", \"quorum\" or \"all\"", "\"quorum\"", "What the answer to a purge waits for where it does not say so itself (`Larder-Wait`, `larder purge --wait`): that it is in force here, that the stream has it, or that every live node has applied it.";
            "max_isolation", DURATION, "\"30s\"", "How long a node that is out of touch uses what it stores: from then on it has everything validated by the origin.";
            "isolation", "\"revalidate\" or \"not-ready\"", "\"revalidate\"", "What a node does then: it validates, or it also answers `health_check` and `/readyz` with 503.";
            "replicas", COUNT, "1", "Copies of the streams among the NATS servers: 1, 3 or 5. Streams with fewer are raised.";
            "keep", DURATION, "\"24h\"", "How long the stream keeps invalidations. A node that was away for longer has everything validated that it stored before.";
            "secret_file", PATHS, "none", "File with a secret of 32 bytes at least, the same on all nodes, with which nodes share ticket keys, and the account, challenges and certificates of `[tls.acme]`: they lie in NATS sealed with it. A second file is the secret before: what was sealed with it is still read. Without the setting none of it is shared; `[]` says that this is meant. The daemon's user reads it, or root.";
            "configuration", "\"local\" or \"shared\"", "\"local\"", "`shared`: besides its own file the node has the configuration that is rolled out to all (`larder cluster roll-out`), with its sites, origins and VCL. Needs `secret_file`.";
            "storage", "an absolute path", "\"/var/lib/larder/cluster\", or `cluster` in systemd's `StateDirectory=`", "Folder for the last configuration that all share, with which the node starts without NATS; the daemon's alone.";
            "user", "a string", "none", "Name of the user at the NATS servers; goes with `password`.";
            "password", "a string", "none", "The user's password.";
            "token", "a string", "none", "A token, instead of user and password.";
            "nkey", "an absolute path", "none", "File with the seed of an nkey, instead of a password.";
            "credentials", "an absolute path", "none", "File with a JWT and a seed, as `nsc` writes it, instead of a password.";
            "ca", "an absolute path", "the system's", "File with the authorities that the servers' certificates are checked against. The daemon's user reads it.";
            "certificate", "an absolute path", "none", "File with the node's own certificate, where servers want one; goes with `key`. The daemon's user reads it.";
            "key", "an absolute path", "none", "File with the key of `certificate`.";
        }
    },
    later: &[],
};
