//! Options that choose a compaction strategy.

use std::collections::BTreeMap;

use compactor::Error;
use compactor::table::{Release, StrategyChoice};
use compactor_strategy::params::CLASSES;

use crate::duration::Seconds;
use crate::flags::ByteSize;

/// The strategy and its options.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Strategy")]
pub struct StrategyArgs {
    /// The strategy: size-tiered, leveled, time-window, unified, level-count, or the name of its class. Default:
    /// schema.cql's, otherwise size-tiered. level-count, which Cassandra does not have, keeps a fixed number of
    /// levels.
    #[arg(long, value_name = "NAME|CLASS")]
    strategy: Option<String>,

    /// An option of the strategy by Cassandra's name; may be repeated. Those of schema.cql apply too if the
    /// strategy is the same.
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    strategy_option: Vec<(String, String)>,

    /// Release of Cassandra whose rules and defaults apply. Default: the one that wrote the newest SSTable.
    #[arg(long, value_enum, value_name = "RELEASE")]
    release: Option<ReleaseArg>,

    /// Minimum number of SSTables in a compaction. Default: schema.cql's, otherwise 4.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    min_threshold: Option<String>,

    /// Maximum number of SSTables in a compaction. Default: schema.cql's, otherwise 32.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    max_threshold: Option<String>,

    /// Lower size bound of a bucket of size-tiered, as a fraction of its average. Default: schema.cql's, otherwise
    /// 0.5.
    #[arg(long, value_name = "FACTOR", allow_hyphen_values = true)]
    bucket_low: Option<String>,

    /// Upper size bound of a bucket of size-tiered, as a multiple of its average. Default: schema.cql's, otherwise
    /// 1.5.
    #[arg(long, value_name = "FACTOR", allow_hyphen_values = true)]
    bucket_high: Option<String>,

    /// Size below which size-tiered puts all SSTables into one bucket. Default: schema.cql's, otherwise 50MiB.
    #[arg(long, value_name = "SIZE")]
    min_sstable_size: Option<ByteSize>,

    /// Size of the SSTables of leveled, in whole MiB. Default: schema.cql's, otherwise 160MiB.
    #[arg(long, value_name = "SIZE", value_parser = mebibytes, allow_hyphen_values = true)]
    sstable_size: Option<u64>,

    /// Number of times that a level of leveled is larger than the one below. Default: schema.cql's, otherwise 10.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    fanout_size: Option<String>,

    /// Scaling parameters of unified, such as T4,L10. Default: schema.cql's, otherwise T4.
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    scaling_parameters: Option<String>,

    /// Window of time-window, such as 1d or 6h. Default: schema.cql's, otherwise 1d.
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    window: Option<String>,

    /// Number of levels of level-count, 1 to 7. Default: 4.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    levels: Option<String>,
}

/// A release of Cassandra.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ReleaseArg {
    #[value(name = "5.0")]
    V5_0,
    #[value(name = "6.0")]
    V6_0,
}

impl StrategyArgs {
    /// The strategy that is chosen.
    ///
    /// # Errors
    /// An option that is set twice.
    pub fn choice(&self) -> Result<StrategyChoice, Error> {
        let mut choice = StrategyChoice::default();
        if let Some(name) = self.strategy.as_deref() {
            choice = choice.class(class_of(name).ok_or_else(|| {
                Error::invalid(format!(
                    "there is no strategy {name:?}: name {}, or a class such as {}",
                    NAMES.join(", "),
                    CLASSES[0]
                ))
            })?);
        }
        let mut options = BTreeMap::new();
        for (name, value) in self.options()? {
            if let Some(other) = options.insert(name.clone(), value.clone()) {
                return Err(Error::invalid(format!(
                    "{name} is set twice, to {other} and {value}; name it once"
                )));
            }
            choice = choice.option(name, value);
        }
        Ok(match self.release {
            Some(release) => choice.release(release.into()),
            None => choice,
        })
    }

    /// Options by Cassandra's names.
    fn options(&self) -> Result<Vec<(String, String)>, Error> {
        let window = self.window.as_deref().map(window).transpose()?;
        let (window_unit, window_size) = window.unzip();
        let text = |value: &Option<String>| value.clone();
        let flags = [
            ("min_threshold", text(&self.min_threshold)),
            ("max_threshold", text(&self.max_threshold)),
            ("bucket_low", text(&self.bucket_low)),
            ("bucket_high", text(&self.bucket_high)),
            (
                "min_sstable_size",
                self.min_sstable_size.map(|size| size.0.to_string()),
            ),
            (
                "sstable_size_in_mb",
                self.sstable_size.map(|size| size.to_string()),
            ),
            ("fanout_size", text(&self.fanout_size)),
            ("scaling_parameters", text(&self.scaling_parameters)),
            ("compaction_window_unit", window_unit.map(str::to_owned)),
            (
                "compaction_window_size",
                window_size.map(|size| size.to_string()),
            ),
            ("level_count", text(&self.levels)),
        ];
        let flags = flags
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Ok(self.strategy_option.iter().cloned().chain(flags).collect())
    }
}

impl From<ReleaseArg> for Release {
    fn from(release: ReleaseArg) -> Release {
        match release {
            ReleaseArg::V5_0 => Release::V5_0,
            ReleaseArg::V6_0 => Release::V6_0,
        }
    }
}

/// Parses an option of a strategy.
pub fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("write it as NAME=VALUE, such as fanout_size=4")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Cassandra's option is a number of MiB.
fn mebibytes(text: &str) -> Result<u64, String> {
    let size: ByteSize = text.parse()?;
    match size.0 % (1 << 20) {
        0 => Ok(size.0 >> 20),
        _ => Err("sstable_size_in_mb is a whole number of MiB, such as 160MiB".to_owned()),
    }
}

/// Unit and number of units of a time window.
///
/// # Errors
/// A span that is no whole number of minutes.
pub fn window(text: &str) -> Result<(&'static str, u64), Error> {
    let span: Result<Seconds, _> = text.parse();
    let Seconds(seconds) = span.map_err(|e| Error::invalid(format!("--window {text}: {e}")))?;
    let units = [("DAYS", 86_400), ("HOURS", 3600), ("MINUTES", 60)];
    let unit = units
        .into_iter()
        .find(|(_, unit)| seconds > 0 && seconds.is_multiple_of(*unit));
    unit.map(|(unit, length)| (unit, seconds / length))
        .ok_or_else(|| {
            Error::invalid(format!(
                "--window {text}: a window is a number of minutes, hours or days, such as 6h"
            ))
        })
}

/// Names of the command, in the order of [`CLASSES`].
pub const NAMES: [&str; 5] = [
    "size-tiered",
    "leveled",
    "time-window",
    "unified",
    "level-count",
];

/// Class of a strategy that is named as in the command or as in Cassandra.
pub fn class_of(name: &str) -> Option<&'static str> {
    let unqualified = name.rsplit('.').next().unwrap_or(name);
    let mut known = NAMES.iter().zip(CLASSES);
    known.find_map(|(short, class)| (*short == name || class == unqualified).then_some(class))
}
