//! Scaling parameters: fan-out and threshold of each level.
//!
//! Source: `UnifiedCompactionStrategy.parseScalingParameter`, `unified.Controller`.

use crate::options::{OptionError, trimmed};

/// Scaling parameter W of each level. Levels beyond the last have the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scaling(Vec<i32>);

impl Default for Scaling {
    /// `T4`.
    fn default() -> Scaling {
        Scaling(vec![2])
    }
}

impl Scaling {
    /// Parses a list such as `T8, T4, N, L4`.
    ///
    /// # Errors
    /// A value other than `N`, a number, or `L` or `T` with a fan-out of at least two.
    pub fn parse(text: &str) -> Result<Scaling, OptionError> {
        // Java drops empty parts at the end of a list.
        let list = text.trim_end_matches(',');
        let parameters: Result<Vec<i32>, OptionError> = list
            .split(',')
            .map(|value| parse_one(trimmed(value)))
            .collect();
        Ok(Scaling(parameters?))
    }

    /// Number of times that a level is denser than the one below.
    pub fn fanout(&self, level: usize) -> usize {
        2 + self.parameter(level).unsigned_abs() as usize
    }

    /// Number of overlapping SSTables from which on a level is compacted.
    pub fn threshold(&self, level: usize) -> usize {
        2 + usize::try_from(self.parameter(level)).unwrap_or(0)
    }

    /// Scaling parameter of a level: positive for tiers, negative for levels.
    pub fn parameter(&self, level: usize) -> i32 {
        self.0.get(level).or(self.0.last()).copied().unwrap_or(0)
    }
}

fn parse_one(value: &str) -> Result<i32, OptionError> {
    let refusal = || {
        OptionError(format!(
            "Scaling parameter {value} must match N|L[0-9]+|T[0-9]+|[+-]?[0-9]+"
        ))
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let fanout = |text: &str| {
        let number: i32 = text.parse().map_err(|_| refusal())?;
        if number < 2 {
            Err(OptionError(format!(
                "Fan factor cannot be lower than 2 in {value}"
            )))
        } else {
            Ok(number)
        }
    };
    if value == "N" {
        return Ok(0);
    }
    if let Some(digits) = value.strip_prefix('L').filter(|text| is_digits(text)) {
        return Ok(2 - fanout(digits)?);
    }
    if let Some(digits) = value.strip_prefix('T').filter(|text| is_digits(text)) {
        return Ok(fanout(digits)? - 2);
    }
    let digits = value.strip_prefix(['+', '-']).unwrap_or(value);
    if is_digits(digits) {
        value.parse().map_err(|_| refusal())
    } else {
        Err(refusal())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ControllerTest.testParseScalingParameters`.
    #[test]
    fn letters_and_numbers() {
        let parsed = Scaling::parse("-50, T5, 3, N, L7, +5, -12, T9, L4, 6, -7, +0, -0");
        let expected = vec![-50, 3, 3, 0, -5, 5, -12, 7, -2, 6, -7, 0, 0];
        assert_eq!(parsed, Ok(Scaling(expected)));
        for bad in [
            "Q6", "L4,,T5", "L1", "T1", "L0", "T0", "T-5", "T+5", "L-5", "L+5", "N3", "7T",
            "\u{a0}T4",
        ] {
            assert!(Scaling::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(
            Scaling::parse("T1").unwrap_err().0,
            "Fan factor cannot be lower than 2 in T1"
        );
        assert_eq!(
            Scaling::parse("Q6").unwrap_err().0,
            "Scaling parameter Q6 must match N|L[0-9]+|T[0-9]+|[+-]?[0-9]+"
        );
    }

    #[test]
    fn fanouts_and_thresholds() {
        let scaling = Scaling::parse("T4, N, L10").expect("parameters");
        assert_eq!(
            [0, 1, 2, 9].map(|level| scaling.fanout(level)),
            [4, 2, 10, 10]
        );
        assert_eq!(
            [0, 1, 2, 9].map(|level| scaling.threshold(level)),
            [4, 2, 2, 2]
        );
    }
}
