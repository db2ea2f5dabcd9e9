//! Fields with digests (RFC 9530, RFC 3230, RFC 1864), and what they are digests of.

/// The subject of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestSubject {
    /// The content of the message: of a part, where only that is sent.
    Content,
    /// The selected representation in its coding, whatever part of it is sent.
    Representation,
}

/// Fields with digests, and what these are of.
pub const DIGESTS: [(&str, DigestSubject); 4] = [
    ("Digest", DigestSubject::Representation),
    ("Content-MD5", DigestSubject::Content),
    ("Repr-Digest", DigestSubject::Representation),
    ("Content-Digest", DigestSubject::Content),
];

/// The subject of the digest in the field called `name`; `None` if that is no digest.
pub fn digest_of(name: &[u8]) -> Option<DigestSubject> {
    let is_called = |own: &str| name.eq_ignore_ascii_case(own.as_bytes());
    DIGESTS.iter().find(|(own, _)| is_called(own)).map(|(_, of)| *of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_of_what_their_standards_say() {
        for (name, of) in [
            ("content-digest", Some(DigestSubject::Content)),
            ("Content-MD5", Some(DigestSubject::Content)),
            ("Repr-Digest", Some(DigestSubject::Representation)),
            ("DIGEST", Some(DigestSubject::Representation)),
            ("Want-Repr-Digest", None),
            ("ETag", None),
        ] {
            assert_eq!(digest_of(name.as_bytes()), of, "{name}");
        }
    }
}
