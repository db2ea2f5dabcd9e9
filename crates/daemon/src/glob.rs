//! Glob patterns for names, as in a shell.

/// Returns true if `text` matches `pattern`, in which `*` matches any bytes and `?` any one byte.
pub(crate) fn matches_glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // The place to continue at when the text behind the last `*` does not match.
    let mut again = None;
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                again = Some((at, from));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[from] => (at, from) = (at + 1, from + 1),
            _ => match &mut again {
                Some((star, behind)) => {
                    *behind += 1;
                    (at, from) = (*star + 1, *behind);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_like_the_shells() {
        for (pattern, text, like) in [
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abcc", true),
            ("*b?d*", "abbcd", true),
            ("a?", "a", false),
            ("a", "ab", false),
            ("*x*", "abc", false),
            ("", "a", false),
            ("app(http*:80)", "app(http://127.0.0.1:80)", true),
        ] {
            assert_eq!(matches_glob(pattern.as_bytes(), text.as_bytes()), like, "{pattern} {text}");
        }
    }
}
