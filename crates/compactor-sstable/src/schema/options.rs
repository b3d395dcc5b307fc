//! Table options after `WITH`.
//!
//! Source: `TableParams`, `CompressionParams`.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::schema::Table;
use crate::schema::cursor::{Cursor, Name};
use crate::schema::lexer::TokenKind;

/// Value of an option, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionValue {
    /// A number, `true`, `false`, a UUID or a blob.
    Literal(String),
    /// A string.
    Text(String),
    /// `{'key': 'value', ...}`; keys and values without quotes.
    Map(BTreeMap<String, String>),
    /// `{'value', ...}`
    Set(Vec<String>),
}

/// Options of a table: those that affect what is written as fields, all of them in `all`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TableOptions {
    /// Seconds that a tombstone must be kept; Cassandra's default is 864000.
    pub gc_grace_seconds: Option<u32>,
    /// False positive chance of the Bloom filter; 1 means no filter.
    pub bloom_filter_fp_chance: Option<f64>,
    /// Compression; Cassandra's default is LZ4 with chunks of 16 KiB.
    pub compression: Option<CompressionOptions>,
    /// Rows per summary entry at full sampling; Cassandra's default is 128.
    pub min_index_interval: Option<u32>,
    /// TTL of writes that specify none, seconds; 0 means none.
    pub default_time_to_live: Option<u32>,
    /// Compaction strategy: `class` and its options.
    pub compaction: Option<BTreeMap<String, String>>,
    /// Every option, by its name in lower case.
    pub all: BTreeMap<String, OptionValue>,
}

/// Option `compression`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CompressionOptions {
    /// False for `{'enabled': 'false'}` and for an empty class.
    pub enabled: bool,
    /// Class, qualified or not.
    pub class: Option<String>,
    /// Uncompressed bytes per chunk.
    pub chunk_length: Option<u32>,
    /// Minimum ratio of uncompressed to compressed length, below which a chunk is stored uncompressed; 0
    /// means always compressed.
    pub min_compress_ratio: Option<f64>,
    /// All entries of the map.
    pub all: BTreeMap<String, String>,
}

/// Reads `property AND property ...` into a table. Returns the clustering columns whose order is given, and whether
/// each is descending.
pub(super) fn parse_properties(
    cursor: &mut Cursor<'_>,
    table: &mut Table,
) -> Result<Vec<(Name, bool)>> {
    let mut clustering_order = Vec::new();
    loop {
        if cursor.take_keywords(&["COMPACT", "STORAGE"]) {
            table.compact_storage = true;
        } else if cursor.take_keywords(&["CLUSTERING", "ORDER", "BY"]) {
            clustering_order = cursor.list(|cursor| {
                let name = cursor.name("a clustering column")?;
                let descending = cursor.take_keyword("DESC");
                if !descending {
                    cursor.take_keyword("ASC");
                }
                Ok((name, descending))
            })?;
        } else if cursor.is_keyword("ID") && *cursor.peek_at(1) == TokenKind::Symbol('=') {
            cursor.advance();
            cursor.advance();
            table.id = parse_id(cursor)?;
        } else {
            parse_option(cursor, &mut table.options)?;
        }
        if !cursor.take_keyword("AND") {
            return Ok(clustering_order);
        }
    }
}

/// Reads a UUID with or without hyphens or quotes. The `tid:` of tables that 6.0 numbers is not a UUID.
fn parse_id(cursor: &mut Cursor<'_>) -> Result<Option<[u8; 16]>> {
    let text = match cursor.peek() {
        TokenKind::Uuid(text) | TokenKind::Word(text) | TokenKind::Number(text) => {
            (*text).to_owned()
        }
        TokenKind::Text(text) => text.clone(),
        _ => return Err(cursor.error("a table id")),
    };
    if text.eq_ignore_ascii_case("tid") && *cursor.peek_at(1) == TokenKind::Symbol(':') {
        for _ in 0..3 {
            cursor.advance();
        }
        return Ok(None);
    }
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    match u128::from_str_radix(&digits, 16) {
        Ok(id) if digits.len() == 32 => {
            cursor.advance();
            Ok(Some(id.to_be_bytes()))
        }
        _ => Err(cursor.error("a UUID")),
    }
}

fn parse_option(cursor: &mut Cursor<'_>, options: &mut TableOptions) -> Result<()> {
    let name = cursor.name("a table option")?.text;
    cursor.expect_symbol('=')?;
    let at = cursor.offset();
    let value = parse_value(cursor)?;
    let given = Given {
        cursor,
        at,
        value: &value,
    };
    match name.as_str() {
        "gc_grace_seconds" => options.gc_grace_seconds = Some(given.number(|_| true)?),
        "min_index_interval" => options.min_index_interval = Some(given.number(|n| *n >= 1)?),
        "max_index_interval" => drop(given.number(|n: &u32| *n >= 1)?),
        "default_time_to_live" => options.default_time_to_live = Some(given.number(|_| true)?),
        "bloom_filter_fp_chance" => {
            options.bloom_filter_fp_chance = Some(given.number(|p| *p > 0.0 && *p <= 1.0)?);
        }
        "crc_check_chance" => drop(given.number(|p: &f64| (0.0..=1.0).contains(p))?),
        "compression" => options.compression = Some(given.compression()?),
        _ => {}
    }
    if name == "compaction"
        && let OptionValue::Map(map) = &value
    {
        options.compaction = Some(map.clone());
    }
    options.all.insert(name, value);
    Ok(())
}

/// Value of an option, and its offset.
struct Given<'v, 'a> {
    cursor: &'v Cursor<'a>,
    at: usize,
    value: &'v OptionValue,
}

impl Given<'_, '_> {
    #[cold]
    fn error(&self, expected: impl Display) -> Error {
        self.cursor.error_at(self.at, expected)
    }

    /// A number, quoted or not.
    fn number<T: FromStr>(&self, is_valid: impl Fn(&T) -> bool) -> Result<T> {
        let text = match self.value {
            OptionValue::Literal(text) | OptionValue::Text(text) => text,
            _ => "",
        };
        let parsed = text.parse().ok().filter(is_valid);
        parsed.ok_or_else(|| self.error("a number in the option's range"))
    }

    /// `{'class': ..., ...}`
    fn compression(&self) -> Result<CompressionOptions> {
        let OptionValue::Map(all) = self.value else {
            return Err(self.error("a map of compression options"));
        };
        let get = |names: &[&str]| names.iter().find_map(|name| all.get(*name));
        let class = get(&["class", "sstable_compression"]).cloned();
        let has_class = class.as_deref().is_some_and(|class| !class.is_empty());
        let enabled = match get(&["enabled"]).map(|text| text.to_ascii_lowercase()) {
            None => has_class,
            Some(text) => text == "true",
        };
        let chunk_length = get(&["chunk_length_in_kb", "chunk_length_kb"]).map(|text| {
            let len = text.parse::<u32>().ok().and_then(|kb| kb.checked_mul(1024));
            len.filter(|len| len.is_power_of_two()).ok_or_else(|| {
                self.error(format!(
                    "chunk_length_in_kb as a power of two, not '{text}'"
                ))
            })
        });
        let min_compress_ratio = get(&["min_compress_ratio"]).map(|text| {
            let ratio = text.parse::<f64>().ok();
            ratio
                .filter(|ratio| *ratio == 0.0 || *ratio >= 1.0)
                .ok_or_else(|| {
                    self.error(format!(
                        "min_compress_ratio as 0 or at least 1, not '{text}'"
                    ))
                })
        });
        Ok(CompressionOptions {
            enabled,
            class,
            chunk_length: chunk_length.transpose()?,
            min_compress_ratio: min_compress_ratio.transpose()?,
            all: all.clone(),
        })
    }
}

fn parse_value(cursor: &mut Cursor<'_>) -> Result<OptionValue> {
    match cursor.peek() {
        TokenKind::Text(text) => {
            let text = text.clone();
            cursor.advance();
            Ok(OptionValue::Text(text))
        }
        TokenKind::Symbol('{') => parse_braces(cursor),
        _ => scalar(cursor).map(OptionValue::Literal),
    }
}

/// Reads a string, number, word or UUID, with its sign.
fn scalar(cursor: &mut Cursor<'_>) -> Result<String> {
    let sign = if cursor.take_symbol('-') { "-" } else { "" };
    let text = match cursor.peek() {
        TokenKind::Number(text) | TokenKind::Word(text) | TokenKind::Uuid(text) => *text,
        TokenKind::Text(text) => text.as_str(),
        _ => return Err(cursor.error("a value")),
    };
    let value = format!("{sign}{text}");
    cursor.advance();
    Ok(value)
}

fn parse_braces(cursor: &mut Cursor<'_>) -> Result<OptionValue> {
    cursor.expect_symbol('{')?;
    let mut map = BTreeMap::new();
    let mut set = Vec::new();
    while !cursor.take_symbol('}') {
        let key = scalar(cursor)?;
        if cursor.take_symbol(':') {
            map.insert(key, scalar(cursor)?);
        } else {
            set.push(key);
        }
        if !cursor.take_symbol(',') {
            cursor.expect_symbol('}')?;
            break;
        }
    }
    Ok(if set.is_empty() {
        OptionValue::Map(map)
    } else {
        OptionValue::Set(set)
    })
}
