//! Fields with digests (RFC 9530, RFC 3230, RFC 1864), and what they are digests of.

/// The subject of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestOf {
    /// The content of the message: of a part, where only that is sent.
    Content,
    /// The selected representation in its coding, whatever part of it is sent.
    Representation,
}

/// Fields with digests, and what these are of.
pub const DIGESTS: [(&str, DigestOf); 4] = [
    ("Digest", DigestOf::Representation),
    ("Content-MD5", DigestOf::Content),
    ("Repr-Digest", DigestOf::Representation),
    ("Content-Digest", DigestOf::Content),
];

/// The subject of the digest in the field called `name`; `None` if that is no digest.
pub fn digest_of(name: &[u8]) -> Option<DigestOf> {
    let is_called = |own: &str| name.eq_ignore_ascii_case(own.as_bytes());
    DIGESTS.iter().find(|(own, _)| is_called(own)).map(|(_, of)| *of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_of_what_their_standards_say() {
        for (name, of) in [
            ("content-digest", Some(DigestOf::Content)),
            ("Content-MD5", Some(DigestOf::Content)),
            ("Repr-Digest", Some(DigestOf::Representation)),
            ("DIGEST", Some(DigestOf::Representation)),
            ("Want-Repr-Digest", None),
            ("ETag", None),
        ] {
            assert_eq!(digest_of(name.as_bytes()), of, "{name}");
        }
    }
}
