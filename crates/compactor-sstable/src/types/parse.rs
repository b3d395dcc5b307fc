//! Parser of the type strings of serialization headers.
//!
//! ```text
//! type  := class [ '(' parameters ')' ]      class without a dot: org.apache.cassandra.db.marshal.
//! ident := [0-9A-Za-z+\-._&]+                blanks and one comma separate parameters
//! ```
//!
//! Source: `TypeParser` and the `getInstance(TypeParser)` of each class.
//!
//! Differs from Cassandra: text after the end of the outermost type is refused, and only the types of
//! `org.apache.cassandra.db.marshal` are known, since a custom class has its own order.

use std::fmt::Display;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::types::{CqlType, UserType, simple};

/// Package that is implied by a name without a dot.
pub(super) const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

/// Maximum nesting accepted; Cassandra is limited only by its stack, and CQL users stay below ten levels.
pub const MAX_DEPTH: usize = 64;

/// Maximum length accepted, bytes: large UDTs of large UDTs take some hundred KiB.
pub const MAX_TEXT_LEN: usize = 1 << 24;

const STRUCTURE: &str = "type_string";

impl CqlType {
    /// Parses a type of a serialization header.
    ///
    /// The empty string is blob, as in `TypeParser.parse`.
    ///
    /// # Errors
    /// Corrupt if the text violates the grammar; unsupported for a class that is not one of Cassandra's own
    /// types, for `ColumnToCollectionType`, and for nesting deeper than [`MAX_DEPTH`].
    pub fn parse(text: &str) -> Result<CqlType> {
        if text.len() > MAX_TEXT_LEN {
            return Err(Error::corrupt(
                STRUCTURE,
                0,
                format!("at most {MAX_TEXT_LEN} bytes"),
                format!("{} bytes", text.len()),
            ));
        }
        let mut parser = Parser {
            text: text.as_bytes(),
            pos: 0,
        };
        parser.skip_blanks();
        if parser.is_at_end() {
            return Ok(CqlType::Bytes);
        }
        let parsed = parser.parse_type(Freezing::AsWritten, 0)?;
        parser.skip_blanks();
        if parser.is_at_end() {
            Ok(parsed)
        } else {
            Err(parser.corrupt("the end of the text"))
        }
    }
}

/// Whether a type is in a context in which everything is frozen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Freezing {
    AsWritten,
    Frozen,
}

struct Parser<'a> {
    text: &'a [u8],
    pos: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.pos).copied()
    }

    fn is_at_end(&self) -> bool {
        self.pos >= self.text.len()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n')) {
            self.pos += 1;
        }
    }

    /// Skips blanks and at most one comma.
    fn skip_separator(&mut self) {
        self.skip_blanks();
        if self.peek() == Some(b',') {
            self.pos += 1;
            self.skip_blanks();
        }
    }

    fn ident(&mut self) -> &'a str {
        let start = self.pos;
        while self.peek().is_some_and(|c| {
            c.is_ascii_alphanumeric() || matches!(c, b'-' | b'+' | b'.' | b'_' | b'&')
        }) {
            self.pos += 1;
        }
        // Only ASCII characters were consumed.
        std::str::from_utf8(&self.text[start..self.pos]).unwrap_or_default()
    }

    fn take(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.pos += 1;
        }
        found
    }

    fn expect(&mut self, wanted: u8) -> Result<()> {
        if self.take(wanted) {
            Ok(())
        } else {
            Err(self.corrupt(format!("'{}'", char::from(wanted))))
        }
    }

    #[cold]
    fn corrupt(&self, expected: impl Display) -> Error {
        let rest = self.text.get(self.pos..).unwrap_or_default();
        let found = if rest.is_empty() {
            "the end of the text".to_owned()
        } else {
            excerpt(rest)
        };
        Error::corrupt(STRUCTURE, self.pos as u64, expected, found)
    }

    #[cold]
    fn corrupt_at(&self, at: usize, expected: impl Display, found: &str) -> Error {
        Error::corrupt(STRUCTURE, at as u64, expected, excerpt(found.as_bytes()))
    }

    fn parse_type(&mut self, freezing: Freezing, depth: usize) -> Result<CqlType> {
        if depth >= MAX_DEPTH {
            return Err(Error::unsupported(format!(
                "a type nested deeper than {MAX_DEPTH} levels"
            )));
        }
        self.skip_blanks();
        let at = self.pos;
        let name = self.ident();
        if name.is_empty() {
            return Err(self.corrupt("a type"));
        }
        self.skip_blanks();
        let class = name.strip_prefix(PACKAGE).unwrap_or(name);
        if let Some(simple) = simple::of_class(class) {
            return self.with_default_parameters(simple);
        }
        let next = depth + 1;
        let multi_cell = freezing == Freezing::AsWritten;
        match class {
            "FrozenType" => {
                let [inner] = self.exactly(at, class, Freezing::Frozen, next)?;
                Ok(inner)
            }
            "ReversedType" => {
                let [base] = self.exactly(at, class, freezing, next)?;
                Ok(CqlType::Reversed(Arc::new(base)))
            }
            "ListType" => {
                let [element] = self.exactly(at, class, Freezing::Frozen, next)?;
                Ok(CqlType::List {
                    element: Arc::new(element),
                    multi_cell,
                })
            }
            "SetType" => {
                let [element] = self.exactly(at, class, Freezing::Frozen, next)?;
                Ok(CqlType::Set {
                    element: Arc::new(element),
                    multi_cell,
                })
            }
            "MapType" => {
                let [key, value] = self.exactly(at, class, Freezing::Frozen, next)?;
                Ok(CqlType::Map {
                    key: Arc::new(key),
                    value: Arc::new(value),
                    multi_cell,
                })
            }
            "TupleType" => Ok(CqlType::Tuple(
                self.parameters(Freezing::Frozen, next)?.into(),
            )),
            "CompositeType" => {
                let types = self.parameters(freezing, next)?;
                if types.is_empty() {
                    return Err(self.corrupt_at(at, "CompositeType of 1 or more types", "none"));
                }
                Ok(CqlType::Composite(types.into()))
            }
            "UserType" => self.user_type(multi_cell, next),
            "VectorType" => self.vector(freezing, next),
            "DynamicCompositeType" => self.dynamic_composite(freezing, next),
            "PartitionerDefinedOrder" => self.partitioner_defined_order(next),
            _ => Err(Error::unsupported(format!(
                "type {}: not a type of org.apache.cassandra.db.marshal that SSTables of 4.0 or \
                 later hold",
                excerpt(name.as_bytes())
            ))),
        }
    }

    /// Parses the parameters of a type that has none: only `(reversed=true)` of 1.x has a meaning.
    ///
    /// Source: `AbstractType.parseDefaultParameters`.
    fn with_default_parameters(&mut self, base: CqlType) -> Result<CqlType> {
        if !self.take(b'(') {
            return Ok(base);
        }
        let mut reversed = false;
        loop {
            self.skip_separator();
            if self.take(b')') {
                break;
            }
            let key = self.ident();
            if key.is_empty() {
                return Err(self.corrupt("a parameter or ')'"));
            }
            self.skip_blanks();
            let mut value = "";
            if self.take(b'=') {
                self.skip_blanks();
                value = self.ident();
            } else if !matches!(self.peek(), Some(b',' | b')')) {
                return Err(self.corrupt("'=', ',' or ')'"));
            }
            if key == "reversed" {
                reversed = value.is_empty() || value == "true";
            }
        }
        Ok(if reversed {
            CqlType::Reversed(Arc::new(base))
        } else {
            base
        })
    }

    fn parameters(&mut self, freezing: Freezing, depth: usize) -> Result<Vec<CqlType>> {
        let mut types = Vec::new();
        if !self.take(b'(') {
            return Ok(types);
        }
        loop {
            self.skip_separator();
            if self.take(b')') {
                return Ok(types);
            }
            types.push(self.parse_type(freezing, depth)?);
        }
    }

    fn exactly<const N: usize>(
        &mut self,
        at: usize,
        class: &str,
        freezing: Freezing,
        depth: usize,
    ) -> Result<[CqlType; N]> {
        let types = self.parameters(freezing, depth)?;
        <[CqlType; N]>::try_from(types).map_err(|types| {
            self.corrupt_at(
                at,
                format!("{class} of {N} type(s)"),
                &format!("{} types", types.len()),
            )
        })
    }

    fn hex(&mut self) -> Result<Vec<u8>> {
        let at = self.pos;
        let digits = self.ident();
        decode_hex(digits)
            .ok_or_else(|| self.corrupt_at(at, "a name in hexadecimal digits", digits))
    }

    fn user_type(&mut self, multi_cell: bool, depth: usize) -> Result<CqlType> {
        self.expect(b'(')?;
        self.skip_separator();
        let at = self.pos;
        let keyspace = self.ident().to_owned();
        if keyspace.is_empty() {
            // If it were written again, the name of the type would be read as the keyspace.
            return Err(self.corrupt_at(at, "the keyspace of a user type", "none"));
        }
        self.skip_separator();
        let name = self.hex()?;
        let mut fields = Vec::new();
        loop {
            self.skip_separator();
            if self.take(b')') {
                break;
            }
            let field = self.hex()?;
            self.skip_blanks();
            self.expect(b':')?;
            fields.push((field, self.parse_type(Freezing::Frozen, depth)?));
        }
        Ok(CqlType::Udt(Arc::new(UserType {
            keyspace,
            name,
            fields,
            multi_cell,
        })))
    }

    /// Its element is as it is written, unlike that of a collection, which is frozen.
    fn vector(&mut self, freezing: Freezing, depth: usize) -> Result<CqlType> {
        self.expect(b'(')?;
        let element = self.parse_type(freezing, depth)?;
        self.skip_separator();
        let at = self.pos;
        let text = self.ident();
        let dimension = match text.parse::<i32>() {
            Ok(dimension) if dimension > 0 => dimension as u32,
            _ => return Err(self.corrupt_at(at, "a vector dimension from 1 to 2147483647", text)),
        };
        self.skip_blanks();
        self.expect(b')')?;
        // Cassandra multiplies in 32 bits; a longer value could not exist.
        let len = element
            .fixed_len()
            .map_or(0, |len| len as u64 * u64::from(dimension));
        if len > i32::MAX as u64 {
            return Err(self.corrupt_at(at, "a vector of at most 2147483647 bytes", text));
        }
        Ok(CqlType::Vector {
            element: Arc::new(element),
            dimension,
        })
    }

    fn dynamic_composite(&mut self, freezing: Freezing, depth: usize) -> Result<CqlType> {
        let mut aliases: Vec<(u8, CqlType)> = Vec::new();
        if self.take(b'(') {
            loop {
                self.skip_separator();
                if self.take(b')') {
                    break;
                }
                let at = self.pos;
                let alias = match self.ident().as_bytes() {
                    [alias] => *alias,
                    other => {
                        let found = String::from_utf8_lossy(other);
                        return Err(self.corrupt_at(at, "an alias of one character", &found));
                    }
                };
                self.skip_blanks();
                self.expect(b'=')?;
                self.expect(b'>')?;
                let parsed = self.parse_type(freezing, depth)?;
                // The last declaration wins, as in Cassandra's map.
                match aliases.binary_search_by_key(&alias, |(alias, _)| *alias) {
                    Ok(index) => aliases[index].1 = parsed,
                    Err(index) => aliases.insert(index, (alias, parsed)),
                }
            }
        }
        Ok(CqlType::DynamicComposite(aliases.into()))
    }

    /// `(partitioner)` before 5.0, `(partitioner:keyType)` since.
    fn partitioner_defined_order(&mut self, depth: usize) -> Result<CqlType> {
        if !self.take(b'(') {
            return Err(Error::unsupported(
                "PartitionerDefinedOrder that names no partitioner (it means the node's own)",
            ));
        }
        self.skip_blanks();
        let partitioner = self.ident().to_owned();
        if partitioner.is_empty() {
            return Err(self.corrupt("a partitioner"));
        }
        self.skip_blanks();
        let key_type = if self.take(b':') {
            Some(Arc::new(self.parse_type(Freezing::AsWritten, depth)?))
        } else {
            None
        };
        self.skip_blanks();
        self.expect(b')')?;
        Ok(CqlType::PartitionerDefinedOrder {
            partitioner,
            key_type,
        })
    }
}

fn decode_hex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits
        .chunks_exact(2)
        .map(|pair| Some((hex_digit(pair[0])? << 4) | hex_digit(pair[1])?))
        .collect()
}

fn hex_digit(c: u8) -> Option<u8> {
    char::from(c).to_digit(16).map(|digit| digit as u8)
}

/// At most 80 bytes of `text`, for a message.
fn excerpt(text: &[u8]) -> String {
    const LEN: usize = 80;
    let shown = String::from_utf8_lossy(text.get(..LEN).unwrap_or(text));
    let dots = if text.len() > LEN { "..." } else { "" };
    format!("'{shown}{dots}'")
}

#[cfg(test)]
mod tests;
