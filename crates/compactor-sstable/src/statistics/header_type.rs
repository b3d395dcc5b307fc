//! Type in a serialization header.

use crate::byte_reader::ByteReader;
use crate::byte_sink::ByteSink;
use crate::error::{Error, Result};
use crate::types::CqlType;

/// A type in a header, as text and parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderType {
    /// Class name with its parameters, as stored: releases spell the same type differently.
    pub text: String,
    /// Parsed type.
    pub cql_type: CqlType,
}

impl HeaderType {
    /// Creates a header type in the spelling of current releases.
    pub fn new(cql_type: CqlType) -> HeaderType {
        HeaderType {
            text: cql_type.class_string(),
            cql_type,
        }
    }

    pub(super) fn parse(
        reader: &mut ByteReader<'_>,
        structure: &'static str,
    ) -> Result<HeaderType> {
        let text = reader.bytes_v(structure)?;
        let at = reader.offset() - text.len() as u64;
        let text = std::str::from_utf8(text).map_err(|_| {
            Error::corrupt(
                structure,
                at,
                "a type's name in UTF-8",
                format!("{text:02x?}"),
            )
        })?;
        let cql_type = CqlType::parse(text).map_err(|error| error.at_base(at))?;
        Ok(HeaderType {
            text: text.to_owned(),
            cql_type,
        })
    }

    /// Freezes user types that the text does not state to be frozen.
    pub(super) fn freeze_user_types(&mut self) {
        if let Some(frozen) = self.cql_type.with_frozen_user_types() {
            *self = HeaderType::new(frozen);
        }
    }

    /// Reads a number of types, and the types; `names` are those of both.
    pub(super) fn parse_all(
        reader: &mut ByteReader<'_>,
        [count, each]: [&'static str; 2],
    ) -> Result<Vec<HeaderType>> {
        let count = reader.uvint_count(1, count)?;
        (0..count)
            .map(|_| HeaderType::parse(reader, each))
            .collect()
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_bytes_v(self.text.as_bytes());
    }
}
