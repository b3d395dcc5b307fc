//! Texts inside HTML and XML.

/// A text as the content of an element or of an attribute in quotation marks. What is no character of
/// XML, and what would turn the direction of the text around it, becomes a replacement character.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => {
                out.push('\u{fffd}');
            }
            c if c.is_control() => out.push('\u{fffd}'),
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
        assert_eq!(
            escaped("<a href=\"x\" b='y'>&\n\u{0}\u{202e}é"),
            "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp; \u{fffd}\u{fffd}é"
        );
    }
}
