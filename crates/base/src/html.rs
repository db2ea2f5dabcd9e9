//! Text within HTML and XML.

/// Lines of a head that make a page of ours readable on a telephone and in the dark. They have a
/// browser fetch nothing.
pub const LOOK: &str = "<meta name=\"viewport\" content=\"width=device-width\">\n\
                        <meta name=\"color-scheme\" content=\"light dark\">\n\
                        <style>body{max-width:40rem;margin:12vh auto;padding:0 1rem;\
                        font-family:system-ui,sans-serif;line-height:1.5}</style>\n";

/// Text that HTML and XML show as it stands: nothing of it is markup, within quotes neither.
/// Control characters, which XML has none of, are replaced.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_markup() {
        assert_eq!(escape("<a b='\"'>&\u{1b}\n"), "&lt;a b=&#39;&quot;&#39;&gt;&amp;\u{fffd}\n");
    }
}
