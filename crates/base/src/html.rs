//! HTML: escaped text, and the head of generated pages.

/// Head elements that make a generated page readable on a phone and in dark mode. They make the
/// browser fetch nothing.
pub const LOOK: &str = "<meta name=\"viewport\" content=\"width=device-width\">\n\
                        <meta name=\"color-scheme\" content=\"light dark\">\n\
                        <style>body{max-width:40rem;margin:12vh auto;padding:0 1rem;\
                        font-family:system-ui,sans-serif;line-height:1.5}</style>\n";

/// Escapes text for HTML and XML, also within quotes. Control characters, which XML does not
/// permit, are replaced.
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
