//! Ring of a shard director: points of its backends, sorted, and the walk from a key. Points equal
//! Varnish's, so that caches of both kinds select one backend for a key; they must not change.

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::state::backend::Backend;

/// Hash for points and keys: the last four bytes of the SHA-256 of `parts`, little-endian.
pub(super) fn hash(parts: &[&[u8]]) -> u32 {
    let mut sum = Sha256::new();
    parts.iter().for_each(|part| sum.update(part));
    let digest: [u8; 32] = sum.finalize().into();
    u32::from_le_bytes(*digest.last_chunk().expect("a digest has 32 bytes"))
}

/// A backend of a ring.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// The backend.
    pub(super) backend: Backend,
    /// Bytes that are hashed for its points; `None` for the name.
    pub(super) ident: Option<Bytes>,
    /// Ramp-up time of its own, in seconds.
    pub(super) rampup: Option<f64>,
    /// Factor of the number of its points, at least 1.
    pub(super) weight: f64,
}

impl Member {
    /// Returns true if `other` has equal points.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.backend.is(&other.backend) && self.ident == other.ident
    }
}

/// Most points of a ring; a larger number is cut for all backends alike.
const POINTS_MAX: usize = 1 << 20;

/// An immutable ring; changes make a new one.
#[derive(Debug, Default)]
pub(super) struct Ring {
    /// Backends of the ring.
    pub(super) members: Vec<Member>,
    /// Points with the number of their backend, sorted.
    points: Vec<(u32, u32)>,
}

impl Ring {
    /// The ring of `members` with `replicas` points for each.
    pub(super) fn new(members: Vec<Member>, replicas: u32) -> Self {
        let most = POINTS_MAX / members.len().max(1);
        let mut points = Vec::new();
        for (number, member) in members.iter().enumerate() {
            let ident = member.ident.as_deref().unwrap_or_else(|| member.backend.name().as_bytes());
            let of_member = (f64::from(replicas) * member.weight) as usize;
            for n in 0..of_member.min(most) {
                points.push((hash(&[ident, n.to_string().as_bytes()]), number as u32));
            }
        }
        points.sort_unstable();
        Self { members, points }
    }

    /// The walk from `key`: numbers of backends, each once. As in Varnish, a key beyond the last
    /// point starts at that point.
    pub(super) fn walk_from(&self, key: u32) -> RingWalk<'_> {
        let found = self.points.partition_point(|(point, _)| *point < key);
        let at = found.min(self.points.len().saturating_sub(1));
        RingWalk { ring: self, at, seen: vec![false; self.members.len()], left: self.members.len() }
    }
}

/// The walk of [`Ring::walk_from`].
#[derive(Debug)]
pub(super) struct RingWalk<'a> {
    ring: &'a Ring,
    at: usize,
    seen: Vec<bool>,
    left: usize,
}

impl Iterator for RingWalk<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        // Each backend has a point, so the loop ends.
        while self.left > 0 {
            let number = self.ring.points.get(self.at)?.1 as usize;
            if !std::mem::replace(&mut self.seen[number], true) {
                self.left -= 1;
                return Some(number);
            }
            self.at = (self.at + 1) % self.ring.points.len();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::state::backend::{BackendSpec, Leaf};

    fn member(name: &str, ident: Option<&'static str>, weight: f64) -> Member {
        Member {
            backend: Backend::Leaf(Leaf::new(name, BackendSpec::default())),
            ident: ident.map(Bytes::from),
            rampup: None,
            weight,
        }
    }

    // Printed by Varnish 7.1.1 with `.debug(2)`.
    #[test]
    fn points_are_those_of_varnish() {
        let members = vec![
            member("b1", None, 1.0),
            member("b2", Some("two"), 1.0),
            member("b3", None, 1.5),
            member("b4", None, 1.0),
            member("b1", Some("b1again"), 1.0),
        ];
        let expected = [
            (0x01ea_d894, 0),
            (0x08bb_2ee8, 4),
            (0x233c_f3b6, 4),
            (0x29ed_d69c, 3),
            (0x359e_a143, 1),
            (0x3927_8c61, 2),
            (0x502c_cacd, 2),
            (0x5a80_a6d4, 2),
            (0x7f13_d7ff, 2),
            (0x8017_1cf3, 3),
            (0xa8aa_903d, 3),
            (0xafa7_e131, 0),
            (0xba5e_b921, 1),
            (0xc74f_c7f7, 0),
            (0xd70b_cc0e, 1),
            (0xe637_d5e3, 4),
        ];
        assert_eq!(Ring::new(members, 3).points, expected);
    }

    // Choices of Varnish 7.1.1 for these keys.
    #[test]
    fn keys_lead_where_they_lead_in_varnish() {
        let members = ["b1", "b2", "b3", "b4"].map(|name| member(name, None, 1.0)).to_vec();
        let ring = Ring::new(members, 67);
        let walk = |key| -> Vec<usize> { ring.walk_from(key).map(|number| number + 1).collect() };
        for (key, first, second, last) in [
            (0, 3, 1, 2),
            (0x7fff_ffff, 4, 2, 3),
            (0x8000_0000, 4, 2, 3),
            (u32::MAX, 1, 3, 2),
            (2_596_996_161, 3, 1, 4),
            (3_965_538_136, 2, 3, 4),
            (144_797_136, 3, 2, 4),
            (3_615_502_446, 4, 1, 3),
            (339_393_121, 4, 1, 2),
            (1_384_718_787, 2, 4, 1),
            (417_643_744, 4, 1, 3),
            (2_269_490_824, 1, 3, 4),
        ] {
            let walk = walk(key);
            assert_eq!((walk[0], walk[1], walk[3]), (first, second, last), "key {key}");
        }
        assert_eq!(hash(&[b"/"]), 4_053_860_029);
        assert_eq!(hash(&[b""]), 1_438_143_096);
    }

    proptest! {
        #[test]
        fn a_way_leads_to_every_backend_once(count in 0_usize..9, replicas in 1_u32..20, key: u32) {
            let members = (0..count).map(|n| member(&format!("b{n}"), None, 1.0)).collect();
            let mut walk: Vec<usize> = Ring::new(members, replicas).walk_from(key).collect();
            walk.sort_unstable();
            prop_assert_eq!(walk, (0..count).collect::<Vec<_>>());
        }
    }
}
