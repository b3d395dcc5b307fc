//! Sizes with units, as in the options of unified compaction.
//!
//! Source: `FBUtilities.parseHumanReadable`, `parsePercent`, `prettyPrintMemory`.

use crate::options::{double, trimmed};

/// Prefixes of units from 10^-30 to 10^30, or from 2^-100 to 2^100 with an `i` after them.
const PREFIXES: &str = "qryzafpnum KMGTPEZYRQ";
const NO_PREFIX: i32 = 10;

/// Number of bytes of a text such as `1.5 GiB`.
///
/// # Errors
/// Message of Java's `NumberFormatException`.
pub(crate) fn parse_bytes(text: &str) -> Result<f64, String> {
    let Some(number) = text.strip_suffix('B') else {
        return Err(format!("{text} does not end in unit B"));
    };
    let (mut value, mut rest) = leading_number(number).ok_or("null")?;
    rest = rest.trim_start();
    if let Some(place) = rest.chars().next().and_then(|prefix| PREFIXES.find(prefix)) {
        let power = place as i32 - NO_PREFIX;
        rest = rest.get(1..).unwrap_or_default();
        if let Some(binary) = rest.strip_prefix('i') {
            value *= 2f64.powi(power * 10);
            rest = binary;
        } else {
            value *= (1000f64.ln() * f64::from(power)).exp();
        }
    }
    if rest.is_empty() {
        Ok(value)
    } else {
        let (end, length) = (number.len() - rest.len(), number.len());
        Err(format!(
            "Unexpected characters between pos {end} and {length} in {text}"
        ))
    }
}

/// Number of bytes, cut down to a whole one.
///
/// # Errors
/// As [`parse_bytes`].
pub(crate) fn parse_whole_bytes(text: &str) -> Result<i64, String> {
    Ok(parse_bytes(text)? as i64)
}

/// A fraction, or a percentage.
///
/// # Errors
/// Message of Java's `NumberFormatException`.
pub(crate) fn parse_percent(text: &str) -> Result<f64, String> {
    let text = trimmed(text);
    let (number, divisor) = match text.strip_suffix('%') {
        Some(number) => (trimmed(number), 100.0),
        None => (text, 1.0),
    };
    let refusal = || {
        if number.is_empty() {
            "empty String".to_owned()
        } else {
            format!("For input string: \"{number}\"")
        }
    };
    Ok(double(number).ok_or_else(refusal)? / divisor)
}

/// A number of bytes with a binary prefix.
pub(crate) fn print_bytes(bytes: i64) -> String {
    let power = bytes.unsigned_abs().max(1).ilog2() / 10;
    if power == 0 {
        return format!("{bytes}B");
    }
    let value = bytes as f64 / 2f64.powi(power as i32 * 10);
    let prefix = PREFIXES.chars().nth((NO_PREFIX as u32 + power) as usize);
    format!("{value:.3}{}iB", prefix.unwrap_or(' '))
}

/// The number that a text begins with, times a power of two such as `*2^10`, and the rest.
fn leading_number(text: &str) -> Option<(f64, &str)> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if text.starts_with("NaN") || unsigned.starts_with("Infinity") {
        let length = if text.starts_with("NaN") {
            3
        } else {
            text.len() - unsigned.len() + 8
        };
        return Some((double(text.get(..length)?)?, text.get(length..)?));
    }
    let mut rest = digits(unsigned)?;
    let fraction = rest.strip_prefix('.').and_then(digits);
    rest = fraction.unwrap_or(rest);
    let exponent = rest
        .strip_prefix(['e', 'E'])
        .and_then(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)));
    rest = exponent.unwrap_or(rest);
    let length = text.len() - rest.len();
    let value = double(text.get(..length)?)?;
    // Java looks for a power of two only after a number without a fraction.
    match fraction {
        None => Some(binary_exponent(value, rest).unwrap_or((value, rest))),
        Some(_) => Some((value, rest)),
    }
}

fn binary_exponent(value: f64, text: &str) -> Option<(f64, &str)> {
    let exponent = text.strip_prefix("*2^")?;
    let rest = digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))?;
    let power: i32 = exponent.get(..exponent.len() - rest.len())?.parse().ok()?;
    Some((value * 2f64.powi(power), rest))
}

/// The text after its leading digits, if there are any.
fn digits(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    (rest.len() < text.len()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_units() {
        assert_eq!(parse_whole_bytes("100MiB"), Ok(100 << 20));
        assert_eq!(parse_whole_bytes("1.5 GiB"), Ok(3 << 29));
        assert_eq!(parse_whole_bytes("12B"), Ok(12));
        assert_eq!(parse_whole_bytes("3*2^20B"), Ok(3 << 20));
        assert_eq!(parse_bytes("2KB").map(f64::round), Ok(2000.0));
        assert_eq!(parse_bytes("InfinityB"), Ok(f64::INFINITY));
        let refused = |text| parse_bytes(text).unwrap_err();
        assert_eq!(refused("100"), "100 does not end in unit B");
        assert_eq!(refused("MiB"), "null");
        assert_eq!(
            refused("1XiB"),
            "Unexpected characters between pos 1 and 3 in 1XiB"
        );
    }

    #[test]
    fn percentages_and_fractions() {
        assert_eq!(parse_percent(" 33.5 % "), Ok(0.335));
        assert_eq!(parse_percent("0.5"), Ok(0.5));
        assert_eq!(
            parse_percent("half").unwrap_err(),
            "For input string: \"half\""
        );
        assert_eq!(parse_percent("%").unwrap_err(), "empty String");
        assert!(parse_percent("\u{a0}33%").is_err());
    }

    #[test]
    fn sizes_are_printed_with_binary_prefixes() {
        assert_eq!(print_bytes(1 << 20), "1.000MiB");
        assert_eq!(print_bytes(1000), "1000B");
        assert_eq!(print_bytes(1500 << 20), "1.465GiB");
    }
}
