//! A read mode and a write mode.

use std::fmt;
use std::str::FromStr;

use compactor_io::{ReadMode, WriteMode};
use serde::{Deserialize, Serialize};

/// Modes in which an arm reads and writes. As text, also in JSON: `direct/buffered`. With `auto`, each run records
/// the modes that were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct IoPair {
    /// Read mode of inputs.
    pub read: ReadMode,
    /// Write mode of outputs.
    pub write: WriteMode,
}

impl fmt::Display for IoPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.read, self.write))
    }
}

impl From<IoPair> for String {
    fn from(pair: IoPair) -> String {
        pair.to_string()
    }
}

impl FromStr for IoPair {
    type Err = String;

    fn from_str(text: &str) -> Result<IoPair, String> {
        let Some((read, write)) = text.split_once('/') else {
            return Err(format!(
                "`{text}` is no read and write mode such as `direct/buffered`"
            ));
        };
        Ok(IoPair {
            read: read.parse().map_err(|e| format!("`{text}`: {e}"))?,
            write: write.parse().map_err(|e| format!("`{text}`: {e}"))?,
        })
    }
}

impl TryFrom<String> for IoPair {
    type Error = String;

    fn try_from(text: String) -> Result<IoPair, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_parse_back() {
        for &read in ReadMode::ALL {
            for &write in WriteMode::ALL {
                let pair = IoPair { read, write };
                assert_eq!(pair.to_string().parse(), Ok(pair));
            }
        }
        assert!("direct".parse::<IoPair>().is_err());
        assert!("trickle/direct".parse::<IoPair>().is_err());
    }
}
