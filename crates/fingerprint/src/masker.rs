//! Masker: passes a text on with `#` in place of each number and token, so that two pages that
//! differ only by these are equal.

/// Letters from which on a word of letters in both cases is a token.
const TOKEN_LETTERS: usize = 20;
/// Longest word that may be text; a longer one is a token. Words are held until their end is known.
const WORD_MAX: usize = 128;
/// Bytes that are passed on together.
const CHUNK: usize = 512;
/// Bytes that are held: a chunk, a word, and the byte behind it. A power of two, by which a place
/// is in bounds without a test.
const HELD: usize = 1024;
const _: () = assert!(CHUNK + WORD_MAX < HELD && HELD.is_power_of_two());

const DIGIT: u8 = 1;
const UPPER: u8 = 1 << 1;
const LOWER: u8 = 1 << 2;
const MARK: u8 = 1 << 3;
const LONG: u8 = 1 << 4;

/// The class of each byte; 0 for bytes that end a word.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        classes[byte as usize] = match byte {
            b'0'..=b'9' => DIGIT,
            b'A'..=b'Z' => UPPER,
            b'a'..=b'z' => LOWER,
            b'_' | b'-' | b'+' => MARK,
            _ => 0,
        };
        byte += 1;
    }
    classes
};

/// A masker of one text that comes in pieces: [`feed`](Self::feed) for each piece, then
/// [`end`](Self::end).
#[derive(Clone, Debug)]
pub struct Masker {
    /// Masked text, and behind it the word whose end has not come yet.
    held: [u8; HELD],
    length: usize,
    /// The beginning of that word.
    word: usize,
    /// The classes of that word's bytes.
    seen: u8,
}

impl Default for Masker {
    fn default() -> Self {
        Self { held: [0; HELD], length: 0, word: 0, seen: 0 }
    }
}

impl Masker {
    /// Takes a piece of the text, and passes masked text to `take`.
    pub fn feed(&mut self, piece: &[u8], mut take: impl FnMut(&[u8])) {
        let (mut length, mut word, mut seen) = (self.length, self.word, self.seen);
        let held = &mut self.held;
        for byte in piece {
            let class = CLASSES[usize::from(*byte)];
            if class == 0 {
                length = end_of_word(held, word, length, seen);
                held[length % HELD] = *byte;
                length += 1;
                (word, seen) = (length, 0);
                if length >= CHUNK {
                    take(&held[..length]);
                    (word, length) = (0, 0);
                }
            } else if length - word < WORD_MAX {
                seen |= class;
                held[length % HELD] = *byte;
                length += 1;
            } else {
                seen |= LONG;
            }
        }
        (self.length, self.word, self.seen) = (length, word, seen);
    }

    /// Ends the text, and passes the rest to `take`. The masker is ready for another text.
    pub fn end(&mut self, mut take: impl FnMut(&[u8])) {
        let Self { held, length, word, seen } = self;
        let end = end_of_word(held, *word, *length, *seen);
        take(&held[..end]);
        (*length, *word, *seen) = (0, 0, 0);
    }
}

/// The end of what is held, once the word there has ended, which is `#` from now on if it is a
/// number or token.
fn end_of_word(held: &mut [u8; HELD], word: usize, length: usize, seen: u8) -> usize {
    let is_mixed = seen & UPPER != 0 && seen & LOWER != 0;
    if seen & (DIGIT | LONG) == 0 && !(is_mixed && length - word >= TOKEN_LETTERS) {
        return length;
    }
    held[word % HELD] = b'#';
    word + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn masked<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
        let (mut masker, mut out) = (Masker::default(), Vec::new());
        for piece in pieces {
            masker.feed(piece, |text| out.extend_from_slice(text));
        }
        masker.end(|text| out.extend_from_slice(text));
        out
    }

    /// The mask as a plain function of the whole text.
    fn model(text: &[u8]) -> Vec<u8> {
        let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-+".contains(byte);
        let mut out = Vec::new();
        for run in text.chunk_by(|a, b| is_of_word(a) == is_of_word(b)) {
            let has = |is: fn(&u8) -> bool| run.iter().any(is);
            let mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
            let is_token = has(u8::is_ascii_digit) || run.len() > 128 || run.len() >= 20 && mixed;
            match run.first().is_some_and(is_of_word) && is_token {
                true => out.push(b'#'),
                false => out.extend_from_slice(run),
            }
        }
        out
    }

    #[test]
    fn numbers_and_tokens_are_masked() {
        let long = format!("a{} b", "-".repeat(WORD_MAX));
        for (text, expected) in [
            ("", ""),
            ("Hello, Anna!", "Hello, Anna!"),
            ("3 items, 12.50 EUR", "# items, #.# EUR"),
            ("<input value=\"aZ_9f\">", "<input value=\"#\">"),
            ("AbcdefghijklmnopqrsT", "#"),
            ("internationalisation", "internationalisation"),
            ("/shop/item-12/", "/shop/#/"),
            (&long, "# b"),
            (&long[1..], &long[1..]),
        ] {
            let masked = masked([text.as_bytes()]);
            assert_eq!(String::from_utf8_lossy(&masked), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_cut_changes_the_mask(
            words in prop::collection::vec("[ -~]{0,40}|[a-zA-Z]{100,200}|[a-z0-9]{1,9}|\\PC", 0..60),
            cuts in prop::collection::vec(1_usize..300, 1..40),
        ) {
            let text = words.concat().into_bytes();
            let (mut rest, mut pieces) = (&text[..], Vec::new());
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            pieces.push(rest);
            prop_assert_eq!(masked(pieces), model(&text));
        }
    }
}
