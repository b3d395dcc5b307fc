//! An arm of the experiment: no compaction, or one with a read mode and a write mode.

use std::fmt;
use std::str::FromStr;

use compactor_io::{ReadMode, WriteMode};
use serde::{Deserialize, Serialize};

/// Modes in which an arm reads and writes. As text, also in JSON: `direct/buffered`. With `auto`, each run records
/// the modes that were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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

/// Work alongside the foreground load. As text, also in JSON: `idle`, or `read/write` such as
/// `buffered/direct`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Arm {
    /// Nothing.
    Idle,
    /// A compaction. Its modes are never `auto`, which would hide what was done.
    Compaction(IoPair),
}

impl Arm {
    /// The arms of a run that names none.
    pub const DEFAULT: [Arm; 8] = [
        Arm::Idle,
        Arm::of(ReadMode::Buffered, WriteMode::Buffered),
        Arm::of(ReadMode::Buffered, WriteMode::Trickle),
        Arm::of(ReadMode::DontNeed, WriteMode::DontNeed),
        Arm::of(ReadMode::DontCache, WriteMode::DontCache),
        Arm::of(ReadMode::Buffered, WriteMode::Direct),
        Arm::of(ReadMode::Direct, WriteMode::Buffered),
        Arm::of(ReadMode::Direct, WriteMode::Direct),
    ];

    /// The compaction that others are compared with: through the page cache both ways.
    pub const BUFFERED: Arm = Arm::of(ReadMode::Buffered, WriteMode::Buffered);

    /// The compaction that touches the page cache in neither direction.
    pub const DIRECT: Arm = Arm::of(ReadMode::Direct, WriteMode::Direct);

    pub(crate) const fn of(read: ReadMode, write: WriteMode) -> Arm {
        Arm::Compaction(IoPair { read, write })
    }

    /// Whether it reads or writes in a mode.
    pub fn uses(self, read: ReadMode, write: WriteMode) -> bool {
        matches!(self, Arm::Compaction(modes) if modes.read == read || modes.write == write)
    }

    /// Whether it reads or writes in mode `dontcache`, which threads perform whatever the backend.
    pub fn is_dontcache(self) -> bool {
        self.uses(ReadMode::DontCache, WriteMode::DontCache)
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arm::Idle => f.pad("idle"),
            Arm::Compaction(modes) => modes.fmt(f),
        }
    }
}

impl From<Arm> for String {
    fn from(arm: Arm) -> String {
        arm.to_string()
    }
}

impl FromStr for Arm {
    type Err = String;

    fn from_str(text: &str) -> Result<Arm, String> {
        if text == "idle" {
            return Ok(Arm::Idle);
        }
        if !text.contains('/') {
            return Err(format!(
                "`{text}` is no arm: expected `idle`, or a read and a write mode such as \
                 `buffered/direct`"
            ));
        }
        let modes: IoPair = text.parse().map_err(|e| format!("arm {e}"))?;
        if modes.read == ReadMode::Auto || modes.write == WriteMode::Auto {
            return Err(format!(
                "arm `{text}`: `auto` may mean one thing here and another there, name the mode"
            ));
        }
        Ok(Arm::Compaction(modes))
    }
}

impl TryFrom<String> for Arm {
    type Error = String;

    fn try_from(text: String) -> Result<Arm, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arms_parse_back() {
        for arm in Arm::DEFAULT {
            assert_eq!(arm.to_string().parse(), Ok(arm));
        }
        for (text, reason) in [
            ("busy", "is no arm"),
            ("direct/trickly", "unknown write mode"),
            ("trickle/direct", "unknown read mode"),
            ("auto/direct", "name the mode"),
        ] {
            let error = text.parse::<Arm>().unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

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
