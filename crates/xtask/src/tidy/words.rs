//! Words of doc comments (STYLE.md). A comment begins with a noun or a verb, because a question
//! leaves the answer to the reader; vague words are forbidden.

/// Words that begin a question, or a comparison with what stands above and may move.
const QUESTIONS: [&str; 6] = ["What", "Whether", "Who", "Which", "How", "The same"];

/// Vague words.
const VAGUE: [&str; 7] =
    ["the like", "of which", "none when", "is none", "whoever", "nobody", "of it that"];

/// Finds lines of doc comments with vague words.
pub(super) fn vague(source: &str) -> Vec<(usize, String)> {
    let lines = source.lines().zip(1..);
    let texts = lines.filter_map(|(line, number)| Some((doc_text(line)?, number)));
    let hits = texts.flat_map(|(text, number)| {
        VAGUE.into_iter().filter(move |words| has_words(text, words)).map(move |words| {
            (number, format!("a doc comment names what it is about, without `{words}`"))
        })
    });
    hits.collect()
}

/// Returns true if `text` contains `words` with no letter next to them.
fn has_words(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + words.len()..].chars().next();
        ![before, after].into_iter().flatten().any(char::is_alphanumeric)
    })
}

/// Finds doc comments that begin with a question word.
pub(super) fn questions(source: &str) -> Vec<(usize, String)> {
    let mut inside = false;
    let mut found = Vec::new();
    for (line, number) in source.lines().zip(1..) {
        let text = doc_text(line);
        if let (false, Some(text)) = (inside, text)
            && let Some(word) = QUESTIONS.into_iter().find(|words| begins_with(text, words))
        {
            let what = format!("a doc comment begins with a noun or a verb, not with `{word}`");
            found.push((number, what));
        }
        inside = text.is_some();
    }
    found
}

/// The text of a doc comment's line.
fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
}

/// Tells whether `text` begins with `words` and no letter behind them.
fn begins_with(text: &str, words: &str) -> bool {
    let rest = text.trim_start().strip_prefix(words);
    rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vague_words_are_found_in_doc_comments_only_and_only_whole() {
        let [doc, like] = ["///", "the like"];
        for (source, lines) in [
            (
                format!("{doc} Cookies and {like}.\n{doc} Others.\n{doc} Of {like}, one.\n"),
                vec![1, 3],
            ),
            (
                format!("// Cookies and {like}.\n{doc} {like}lihood\n{doc} breathe {like}ly\n"),
                vec![],
            ),
        ] {
            let found: Vec<usize> = vague(&source).into_iter().map(|(line, _)| line).collect();
            assert_eq!(found, lines, "{source}");
        }
    }

    #[test]
    fn a_question_at_the_beginning_of_a_doc_comment_is_found_and_nothing_else() {
        let [doc, head] = ["///", "//!"];
        for (source, lines) in [
            (format!("{head} What it is.\n\n{doc} Whether it is.\nfn a() {{}}\n"), vec![1, 3]),
            (format!("    {doc} How many.\n    {doc} Which, too.\n"), vec![1]),
            (format!("{doc} Tells\n{doc} What it is, and whether.\n"), vec![]),
            (format!("{doc} The same.\n\n{doc} The sameness.\n"), vec![1]),
            (format!("{doc} Whatever comes.\n// What is why.\n"), vec![]),
        ] {
            let found: Vec<usize> = questions(&source).into_iter().map(|(line, _)| line).collect();
            assert_eq!(found, lines, "{source}");
        }
    }
}
