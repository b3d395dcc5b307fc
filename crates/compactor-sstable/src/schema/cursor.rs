//! Cursor over tokens with one token of lookahead.

use std::fmt::Display;

use crate::error::{Error, Result};
use crate::schema::lexer::{Token, TokenKind, error_at, tokens};

pub(super) struct Cursor<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    pos: usize,
}

/// A name as interpreted by CQL: folded to lower case unless quoted.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) quoted: bool,
    /// Offset in the text, for messages.
    pub(super) offset: usize,
}

/// `[keyspace.]name`
#[derive(Clone, Debug, PartialEq)]
pub(super) struct QualifiedName {
    pub(super) keyspace: Option<String>,
    pub(super) name: Name,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Result<Cursor<'a>> {
        Ok(Cursor {
            text,
            tokens: tokens(text)?,
            pos: 0,
        })
    }

    pub(super) fn peek(&self) -> &TokenKind<'a> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> &TokenKind<'a> {
        self.tokens
            .get(self.pos + ahead)
            .map_or(&TokenKind::End, |token| &token.kind)
    }

    pub(super) fn offset(&self) -> usize {
        self.tokens
            .get(self.pos)
            .map_or(self.text.len(), |token| token.start)
    }

    pub(super) fn is_at_end(&self) -> bool {
        *self.peek() == TokenKind::End
    }

    pub(super) fn advance(&mut self) -> TokenKind<'a> {
        let kind = self.peek().clone();
        if kind != TokenKind::End {
            self.pos += 1;
        }
        kind
    }

    /// Creates an error at the next token.
    #[cold]
    pub(super) fn error(&self, expected: impl Display) -> Error {
        error_at(self.text, self.offset(), expected)
    }

    /// Creates an error at an offset.
    #[cold]
    pub(super) fn error_at(&self, offset: usize, expected: impl Display) -> Error {
        error_at(self.text, offset, expected)
    }

    pub(super) fn is_keyword(&self, keyword: &str) -> bool {
        self.is_keyword_at(0, keyword)
    }

    fn is_keyword_at(&self, ahead: usize, keyword: &str) -> bool {
        matches!(self.peek_at(ahead), TokenKind::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    pub(super) fn take_keyword(&mut self, keyword: &str) -> bool {
        let found = self.is_keyword(keyword);
        self.pos += usize::from(found);
        found
    }

    /// Consumes all of `keywords` or none.
    pub(super) fn take_keywords(&mut self, keywords: &[&str]) -> bool {
        let found = keywords
            .iter()
            .enumerate()
            .all(|(i, keyword)| self.is_keyword_at(i, keyword));
        self.pos += if found { keywords.len() } else { 0 };
        found
    }

    pub(super) fn expect_keyword(&mut self, keyword: &str) -> Result<()> {
        if self.take_keyword(keyword) {
            Ok(())
        } else {
            Err(self.error(keyword))
        }
    }

    pub(super) fn take_symbol(&mut self, symbol: char) -> bool {
        let found = *self.peek() == TokenKind::Symbol(symbol);
        self.pos += usize::from(found);
        found
    }

    pub(super) fn expect_symbol(&mut self, symbol: char) -> Result<()> {
        if self.take_symbol(symbol) {
            Ok(())
        } else {
            Err(self.error(format!("'{symbol}'")))
        }
    }

    pub(super) fn name(&mut self, expected: &str) -> Result<Name> {
        let (text, quoted) = match self.peek() {
            TokenKind::Word(word) if word.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                (word.to_ascii_lowercase(), false)
            }
            TokenKind::Quoted(text) => (text.clone(), true),
            _ => return Err(self.error(expected)),
        };
        let offset = self.offset();
        self.pos += 1;
        Ok(Name {
            text,
            quoted,
            offset,
        })
    }

    pub(super) fn qualified_name(&mut self, expected: &str) -> Result<QualifiedName> {
        let first = self.name(expected)?;
        let (keyspace, name) = if self.take_symbol('.') {
            (Some(first.text), self.name(expected)?)
        } else {
            (None, first)
        };
        Ok(QualifiedName { keyspace, name })
    }

    /// Skips to the `;` that ends the statement, or to the end of the text.
    pub(super) fn skip_statement(&mut self) {
        while !self.is_at_end() && *self.peek() != TokenKind::Symbol(';') {
            self.pos += 1;
        }
    }

    /// Skips to a `,` or a closing bracket of an enclosing list, or to the end of the statement.
    pub(super) fn skip_item(&mut self) {
        let mut depth = 0usize;
        loop {
            match self.peek() {
                TokenKind::End | TokenKind::Symbol(';') => return,
                TokenKind::Symbol(',') if depth == 0 => return,
                TokenKind::Symbol('(' | '[' | '{') => depth += 1,
                TokenKind::Symbol(')' | ']' | '}') => match depth.checked_sub(1) {
                    Some(less) => depth = less,
                    None => return,
                },
                _ => {}
            }
            self.pos += 1;
        }
    }

    /// Reads `( item , item ... )`; a trailing comma is accepted.
    pub(super) fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Cursor<'a>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.expect_symbol('(')?;
        let mut items = Vec::new();
        while !self.take_symbol(')') {
            items.push(item(self)?);
            if !self.take_symbol(',') {
                self.expect_symbol(')')?;
                break;
            }
        }
        Ok(items)
    }

    /// Reads a list in brackets, or at least one item without brackets.
    pub(super) fn items<T>(
        &mut self,
        mut item: impl FnMut(&mut Cursor<'a>) -> Result<T>,
    ) -> Result<Vec<T>> {
        if *self.peek() == TokenKind::Symbol('(') {
            return self.list(item);
        }
        let mut items = vec![item(self)?];
        while self.take_symbol(',') {
            items.push(item(self)?);
        }
        Ok(items)
    }
}
