//! Names in CQL.

use std::borrow::Cow;

/// Words that CQL accepts as a name only if quoted (`reserved_keywords.txt`, 6.0-alpha2).
const RESERVED: &str = "add allow alter and apply asc authorize batch begin by columnfamily create delete desc \
    describe drop entries execute from full grant if in index infinity insert into is \
    keyspace limit materialized modify nan norecursive not null of on or order primary \
    rename revoke schema select set table to token truncate unlogged update use using view \
    where with";

/// Returns the name, in double quotes if CQL would otherwise fold or refuse it.
///
/// `sstabledump` prints column names in this form.
///
/// Source: `ColumnIdentifier.maybeQuote`.
pub fn maybe_quote(name: &str) -> Cow<'_, str> {
    let mut bytes = name.bytes();
    let plain = bytes.next().is_some_and(|c| c.is_ascii_lowercase())
        && bytes.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_');
    if plain && RESERVED.split(' ').all(|word| word != name) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(format!("\"{}\"", name.replace('"', "\"\"")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_where_needed() {
        for plain in ["a", "c1", "first_name", "key", "timestamp"] {
            assert_eq!(maybe_quote(plain), plain);
        }
        for quoted in ["", "A", "1c", "_a", "a b", "ü", "select", "with", "add"] {
            assert_eq!(maybe_quote(quoted), format!("\"{quoted}\""));
        }
        assert_eq!(maybe_quote("a\"b"), "\"a\"\"b\"");
    }
}
