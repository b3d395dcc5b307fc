//! Values of options that are spans of time, such as `7d`.

use std::fmt;
use std::str::FromStr;

/// Units and their seconds, longest first.
const UNITS: [(char, u64); 5] = [
    ('w', 604_800),
    ('d', 86_400),
    ('h', 3600),
    ('m', 60),
    ('s', 1),
];

/// A number of seconds, written with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seconds(pub u64);

impl FromStr for Seconds {
    type Err = String;

    /// Numbers with units, one after the other: `90s`, `1d`, `1d12h`; seconds without one.
    fn from_str(text: &str) -> Result<Seconds, String> {
        let bad =
            || format!("{text:?} is not a span of time; write seconds, or 90s, 30m, 12h, 7d, 2w");
        if let Ok(seconds) = text.parse() {
            return Ok(Seconds(seconds));
        }
        let mut total: u64 = 0;
        let mut rest = text;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
            let (number, tail) = rest.split_at(digits);
            let number: u64 = number.parse().map_err(|_| bad())?;
            let unit = tail.chars().next().ok_or_else(bad)?;
            let (_, seconds) = UNITS
                .iter()
                .find(|(name, _)| *name == unit)
                .ok_or_else(bad)?;
            total = number
                .checked_mul(*seconds)
                .and_then(|span| total.checked_add(span))
                .ok_or_else(bad)?;
            rest = &tail[unit.len_utf8()..];
        }
        if text.is_empty() {
            Err(bad())
        } else {
            Ok(Seconds(total))
        }
    }
}

impl fmt::Display for Seconds {
    /// Formats the duration as a whole number of the longest unit possible.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |seconds: u64| self.0 >= seconds && self.0.is_multiple_of(seconds);
        match UNITS.iter().find(|(_, seconds)| fits(*seconds)) {
            Some((unit, seconds)) => write!(f, "{}{unit}", self.0 / seconds),
            None => write!(f, "{}s", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        for (text, seconds, shown) in [
            ("0", 0, "0s"),
            ("90", 90, "90s"),
            ("90s", 90, "90s"),
            ("30m", 1800, "30m"),
            ("24h", 86_400, "1d"),
            ("1d12h", 129_600, "36h"),
            ("2w", 1_209_600, "2w"),
        ] {
            let parsed: Seconds = text.parse().unwrap();
            assert_eq!(parsed.0, seconds, "{text}");
            assert_eq!(parsed.to_string(), shown);
        }
        for text in [
            "",
            "d",
            "1x",
            "1.5h",
            "-1s",
            "1d2",
            "1é",
            "99999999999999999999s",
            "99999999999999999w",
        ] {
            assert!(text.parse::<Seconds>().is_err(), "{text}");
        }
    }
}
