//! Options of a table's `compaction = {...}`, parsed as in Cassandra and refused with its messages.

use std::collections::BTreeMap;
use std::str::FromStr;

/// Error of an option that Cassandra refuses, with its message (`ConfigurationException`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionError(pub String);

/// Options by name, as in CQL.
pub type Options = BTreeMap<String, String>;

/// `min_threshold` and `max_threshold`.
///
/// Source: `CompactionParams`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Minimum number of SSTables per compaction.
    pub min: usize,
    /// Maximum number of SSTables per compaction.
    pub max: usize,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { min: 4, max: 32 }
    }
}

impl Thresholds {
    /// Parses the options.
    ///
    /// # Errors
    /// A value that is not a whole number, a minimum below two, or a maximum below the minimum.
    pub fn from_options(options: &Options) -> Result<Thresholds, OptionError> {
        let Thresholds { mut min, mut max } = Thresholds::default();
        for (name, field) in [("min_threshold", &mut min), ("max_threshold", &mut max)] {
            set(field, options, name, |text| {
                whole_number(text).ok_or_else(|| {
                    OptionError(format!(
                        "Invalid value {text} for '{name}' compaction sub-option - must be an integer"
                    ))
                })
            })?;
        }
        if min == 0 || max == 0 {
            return Err(OptionError(
                "Disabling compaction by setting compaction thresholds to 0 has been removed, set the \
                 compaction option 'enabled' to false instead."
                    .to_owned(),
            ));
        }
        if min < 2 {
            return Err(OptionError(format!(
                "Min compaction threshold cannot be less than 2 (got {min})"
            )));
        }
        if min > max {
            return Err(OptionError(format!(
                "Min compaction threshold (got {min}) cannot be greater than max compaction threshold \
                 (got {max})"
            )));
        }
        Ok(Thresholds { min, max })
    }
}

/// Sets a field to the value of an option, if there is one.
pub(crate) fn set<T>(
    field: &mut T,
    options: &Options,
    name: &str,
    parse: impl FnOnce(&str) -> Result<T, OptionError>,
) -> Result<(), OptionError> {
    if let Some(text) = options.get(name) {
        *field = parse(text)?;
    }
    Ok(())
}

/// Options of every strategy (`AbstractCompactionStrategy.validateOptions`).
const COMMON: [&str; 7] = [
    "tombstone_threshold",
    "tombstone_compaction_interval",
    "unchecked_tombstone_compaction",
    "log_all",
    "enabled",
    "only_purge_repaired_tombstones",
    "provide_overlapping_tombstones",
];

/// Refuses options that are neither in a list of this strategy nor common to all (`CompactionParams.validate`).
pub(crate) fn refuse_unknown(
    options: &Options,
    class: &str,
    own: &[&[&str]],
) -> Result<(), OptionError> {
    let is_own = |name: &str| own.iter().any(|names| names.contains(&name));
    let is_known = |name: &str| COMMON.contains(&name) || is_own(name);
    let names = options.keys().map(String::as_str);
    let unknown: Vec<&str> = names.filter(|name| !is_known(name)).collect();
    match unknown[..] {
        [] => Ok(()),
        _ => Err(OptionError(format!(
            "Properties specified [{}] are not understood by {class}",
            unknown.join(", ")
        ))),
    }
}

/// Source: `CompactionParams.create`.
pub(crate) fn refuse_bad_overlapping_tombstones(options: &Options) -> Result<(), OptionError> {
    let value = options.get("provide_overlapping_tombstones");
    let value = value.map(|text| text.to_uppercase());
    match value.filter(|value| !["NONE", "ROW", "CELL"].contains(&value.as_str())) {
        None => Ok(()),
        Some(value) => Err(OptionError(format!(
            "Invalid value {value} for 'provide_overlapping_tombstones' compaction sub-option - must be \
             one of the following [NONE, ROW, CELL]."
        ))),
    }
}

/// A Java `int` consisting only of digits.
fn whole_number(text: &str) -> Option<usize> {
    let is_digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse::<i32>().ok().filter(|_| is_digits)?;
    usize::try_from(number).ok()
}

/// `Integer.parseInt` or `Long.parseLong`: digits with an optional sign. Most messages call either an `int`.
pub(crate) fn number<T: FromStr>(text: &str, name: &str) -> Result<T, OptionError> {
    text.parse().map_err(|_| not_an_int(text, name))
}

/// Refusal of a text that is not a number.
pub(crate) fn not_an_int(text: &str, name: &str) -> OptionError {
    OptionError(format!("{text} is not a parsable int (base10) for {name}"))
}

/// `String.trim`, which leaves white space that is not ASCII.
pub(crate) fn trimmed(text: &str) -> &str {
    text.trim_matches(|c| c <= ' ')
}

/// `Double.parseDouble`, except for hexadecimal numbers.
pub(crate) fn double(text: &str) -> Option<f64> {
    let text = trimmed(text);
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    match unsigned {
        "NaN" => return Some(f64::NAN),
        "Infinity" if text.starts_with('-') => return Some(f64::NEG_INFINITY),
        "Infinity" => return Some(f64::INFINITY),
        _ => {}
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let digits = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    digits.parse().ok()
}

/// `Double.toString`.
pub(crate) fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        return format!("{value:?}");
    }
    let text = format!("{value:E}");
    match text.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => text,
    }
}

/// `true` or `false` in any case.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    text.to_ascii_lowercase().parse().ok()
}

/// Options by names and values.
#[cfg(test)]
pub(crate) fn of(pairs: &[(&str, &str)]) -> Options {
    let owned = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
    pairs.iter().map(owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_cassandras() {
        assert_eq!(
            Thresholds::from_options(&Options::new()),
            Ok(Thresholds { min: 4, max: 32 })
        );
        let both = of(&[("min_threshold", "2"), ("max_threshold", "2")]);
        assert_eq!(
            Thresholds::from_options(&both),
            Ok(Thresholds { min: 2, max: 2 })
        );
    }

    #[test]
    fn bad_thresholds_are_refused_in_cassandras_words() {
        let refused = |pairs: &[(&str, &str)], words: &str| {
            let found = Thresholds::from_options(&of(pairs)).unwrap_err().0;
            assert!(found.starts_with(words), "{found}");
        };
        refused(
            &[("min_threshold", "-4")],
            "Invalid value -4 for 'min_threshold' compaction sub-option - must be an integer",
        );
        refused(
            &[("max_threshold", "")],
            "Invalid value  for 'max_threshold'",
        );
        refused(&[("max_threshold", "0")], "Disabling compaction by setting");
        refused(
            &[("min_threshold", "1")],
            "Min compaction threshold cannot be less than 2 (got 1)",
        );
        refused(
            &[("max_threshold", "3")],
            "Min compaction threshold (got 4) cannot be greater than max compaction threshold (got 3)",
        );
    }

    #[test]
    fn numbers_are_javas() {
        assert_eq!(double(" 1.5d "), Some(1.5));
        assert_eq!(double("-.5f"), Some(-0.5));
        assert_eq!(double("1e-3"), Some(0.001));
        assert_eq!(double("Infinity"), Some(f64::INFINITY));
        let texts = [1.5, 1e7, 99_999_999_999.0, 0.000_5, -0.0].map(double_text);
        assert_eq!(texts, ["1.5", "1.0E7", "9.9999999999E10", "5.0E-4", "-0.0"]);
        for bad in ["", "inf", "nan", "1,5", "d", "infinity", "0.5x"] {
            assert_eq!(double(bad), None, "{bad}");
        }
    }
}
