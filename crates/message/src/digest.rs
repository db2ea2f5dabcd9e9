//! Digest fields (RFC 9530, RFC 3230, RFC 1864), and the bytes that each covers.

/// The subject of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestSubject {
    /// The content of the message, which may be a part.
    Content,
    /// The whole selected representation in its coding, even if a part is sent.
    Representation,
}

/// Digest fields, and the subject of each.
pub const DIGESTS: [(&str, DigestSubject); 4] = [
    ("Digest", DigestSubject::Representation),
    ("Content-MD5", DigestSubject::Content),
    ("Repr-Digest", DigestSubject::Representation),
    ("Content-Digest", DigestSubject::Content),
];

/// The subject of the digest field called `name`; `None` for other fields.
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
