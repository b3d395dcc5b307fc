//! Lexer of CQL: words, strings, numbers and symbols.
//!
//! Source: `Lexer.g`.

use std::fmt::Display;

use crate::error::{Error, Result};
use crate::schema::STRUCTURE;

/// A token of CQL and its offset.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind<'a>,
    pub(super) start: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind<'a> {
    /// An unquoted name or keyword, a blob, or other adjacent characters.
    Word(&'a str),
    /// A number, without its sign.
    Number(&'a str),
    /// `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`
    Uuid(&'a str),
    /// A name in double quotes, without them.
    Quoted(String),
    /// A string in single quotes or between `$$`, without them.
    Text(String),
    Symbol(char),
    End,
}

/// Splits `text`; the last token is [`TokenKind::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>> {
    let mut lexer = Lexer { text, pos: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks_and_comments()?;
        let start = lexer.pos;
        let kind = lexer.next()?;
        let end = kind == TokenKind::End;
        tokens.push(Token { kind, start });
        if end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    pos: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.pos..).unwrap_or_default()
    }

    fn skip_blanks_and_comments(&mut self) -> Result<()> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.pos += rest.len() - trimmed.len();
            if trimmed.starts_with("--") || trimmed.starts_with("//") {
                self.pos += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if let Some(comment) = trimmed.strip_prefix("/*") {
                match comment.find("*/") {
                    Some(len) => self.pos += 2 + len + 2,
                    None => return Err(error_at(self.text, self.pos, "the end of a comment")),
                }
            } else {
                return Ok(());
            }
        }
    }

    fn next(&mut self) -> Result<TokenKind<'a>> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(TokenKind::End);
        };
        if let Some(uuid) = rest.get(..36).filter(|text| is_uuid(text)) {
            self.pos += 36;
            return Ok(TokenKind::Uuid(uuid));
        }
        match first {
            '"' => self.quoted('"').map(TokenKind::Quoted),
            '\'' => self.quoted('\'').map(TokenKind::Text),
            _ if rest.starts_with("$$") => match rest[2..].find("$$") {
                Some(len) => {
                    self.pos += 2 + len + 2;
                    Ok(TokenKind::Text(rest[2..2 + len].to_owned()))
                }
                None => Err(error_at(self.text, self.pos, "'$$' at the end of a string")),
            },
            c if c.is_ascii_alphanumeric() || c == '_' => {
                let number = number_len(rest);
                let word = word_len(rest);
                if number >= word {
                    self.pos += number;
                    Ok(TokenKind::Number(&rest[..number]))
                } else {
                    self.pos += word;
                    Ok(TokenKind::Word(&rest[..word]))
                }
            }
            c => {
                self.pos += c.len_utf8();
                Ok(TokenKind::Symbol(c))
            }
        }
    }

    /// Reads text up to the closing quote; a doubled quote is one quote.
    fn quoted(&mut self, quote: char) -> Result<String> {
        let start = self.pos;
        let mut out = String::new();
        let mut chars = self.rest().char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            if c != quote {
                out.push(c);
            } else if chars.peek().is_some_and(|(_, next)| *next == quote) {
                chars.next();
                out.push(quote);
            } else {
                self.pos = start + at + 1;
                return Ok(out);
            }
        }
        Err(error_at(self.text, start, format!("a closing {quote}")))
    }
}

fn is_uuid(text: &str) -> bool {
    text.bytes().enumerate().all(|(index, c)| match index {
        8 | 13 | 18 | 23 => c == b'-',
        _ => c.is_ascii_hexdigit(),
    })
}

fn word_len(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(text.len())
}

/// Length of `digits [. digits] [e [+-] digits]`, or 0.
fn number_len(text: &str) -> usize {
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len())
    };
    let mut len = digits(0);
    if len == 0 {
        return 0;
    }
    if text[len..].starts_with('.') {
        len += 1 + digits(len + 1);
    }
    if text[len..].starts_with(['e', 'E']) {
        let sign = usize::from(text[len + 1..].starts_with(['+', '-']));
        let exponent = digits(len + 1 + sign);
        if exponent > 0 {
            len += 1 + sign + exponent;
        }
    }
    len
}

/// Creates an error with line and column, both from 1.
#[cold]
pub(super) fn error_at(text: &str, offset: usize, expected: impl Display) -> Error {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    let found = excerpt(text, offset);
    Error::corrupt(
        STRUCTURE,
        offset as u64,
        expected,
        format!("{found} (line {line}, column {column})"),
    )
}

/// The rest of the line from `offset` on, at most 40 characters.
fn excerpt(text: &str, offset: usize) -> String {
    let rest = text.get(offset..).unwrap_or_default();
    let shown: String = rest.chars().take_while(|c| *c != '\n').take(40).collect();
    match shown.trim_end() {
        "" if rest.is_empty() => "the end of the text".to_owned(),
        "" => "the end of the line".to_owned(),
        shown => format!("'{shown}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind<'_>> {
        tokens(text)
            .unwrap()
            .into_iter()
            .map(|token| token.kind)
            .collect()
    }

    #[test]
    fn comments_strings_and_names() {
        use TokenKind::{End, Quoted, Symbol, Text, Word};
        assert_eq!(
            kinds("a -- x ' y\nB /* ; ' */ \"C\"\"d\" // z\n'it''s; -- no comment' $$x'y;$$ <"),
            [
                Word("a"),
                Word("B"),
                Quoted("C\"d".to_owned()),
                Text("it's; -- no comment".to_owned()),
                Text("x'y;".to_owned()),
                Symbol('<'),
                End,
            ]
        );
    }

    #[test]
    fn numbers_and_identifiers_that_look_like_them() {
        use TokenKind::{End, Number, Symbol, Uuid, Word};
        assert_eq!(
            kinds("1 0.01 1E-5 1.5e3 -2 5b925f90-a4c0-11ef-8b25-0123456789ab 5b92f 0xff 1e"),
            [
                Number("1"),
                Number("0.01"),
                Number("1E-5"),
                Number("1.5e3"),
                Symbol('-'),
                Number("2"),
                Uuid("5b925f90-a4c0-11ef-8b25-0123456789ab"),
                Word("5b92f"),
                Word("0xff"),
                Word("1e"),
                End,
            ]
        );
    }

    #[test]
    fn unterminated_pieces_are_errors_with_a_place() {
        for (text, place) in [
            ("x\n  'abc", "line 2, column 3"),
            ("\"abc", "line 1, column 1"),
            ("a /* b", "line 1, column 3"),
            ("é $$ b $", "line 1, column 3"),
        ] {
            let message = tokens(text).unwrap_err().to_string();
            assert!(message.contains(place), "{message}");
        }
    }
}
