//! `--sweep`: the same simulation with several values of an option.

use std::str::FromStr;

/// An option and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sweep {
    /// Name, as an option of the command without dashes before it, or of the strategy.
    pub(super) name: String,
    pub(super) values: Vec<String>,
}

/// Most values of a sweep.
const MAX_VALUES: usize = 64;

impl FromStr for Sweep {
    type Err = String;

    /// A list or whole numbers: `fanout-size=4,10`, `fanout-size=2..16`, `fanout-size=2..16/2`.
    fn from_str(text: &str) -> Result<Sweep, String> {
        let bad = || {
            format!("{text:?} is no sweep; write NAME=FROM..TO, NAME=FROM..TO/STEP or NAME=A,B,C")
        };
        let (name, values) = text.split_once('=').ok_or_else(bad)?;
        let values: Vec<String> = match values.split_once("..") {
            None => values.split(',').map(str::to_owned).collect(),
            Some((from, to)) => {
                let (to, step) = to.split_once('/').unwrap_or((to, "1"));
                let number = |number: &str| {
                    number.parse::<u32>().map_err(|_| {
                        format!(
                            "{text:?}: FROM..TO/STEP are whole numbers without a unit; write {name}=A,B,C"
                        )
                    })
                };
                let (from, to, step) = (number(from)?, number(to)?, number(step)?);
                if from > to || step == 0 {
                    return Err(format!(
                        "{text:?}: FROM must not be greater than TO, and STEP not 0"
                    ));
                }
                let values = (from..=to).step_by(step as usize);
                values
                    .take(MAX_VALUES + 1)
                    .map(|value| value.to_string())
                    .collect()
            }
        };
        match () {
            () if name.is_empty() || values.iter().any(String::is_empty) => Err(bad()),
            () if values.len() > MAX_VALUES => {
                Err(format!("{text:?}: at most {MAX_VALUES} values"))
            }
            () => Ok(Sweep {
                name: name.trim_start_matches('-').replace('_', "-"),
                values,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_lists() {
        let values = |text: &str| text.parse::<Sweep>().map(|sweep| sweep.values);
        assert_eq!(values("fanout-size=2..4").unwrap(), ["2", "3", "4"]);
        assert_eq!(values("fanout-size=2..9/3").unwrap(), ["2", "5", "8"]);
        assert_eq!(values("ttl=1d,2d").unwrap(), ["1d", "2d"]);
        for bad in [
            "",
            "x",
            "=1",
            "a=",
            "a=1,,2",
            "a=4..2",
            "a=1..9/0",
            "a=1..1000",
            "a=x..y",
        ] {
            assert!(values(bad).is_err(), "{bad}");
        }
    }
}
