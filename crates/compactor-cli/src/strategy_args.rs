//! Options that choose a compaction strategy.

use std::collections::BTreeMap;

use compactor::Error;
use compactor::table::{Release, StrategyChoice, Table};
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

    /// Release of Cassandra whose rules and defaults apply. Default: the one that writes the version of the newest
    /// SSTable, or 6.0 if that one alone has the options of the strategy.
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

    /// Size below which size-tiered puts all SSTables into one bucket; for unified, minimum size of an output's shard.
    /// Default: schema.cql's, otherwise 50MiB, for unified 100MiB.
    #[arg(long, value_name = "SIZE")]
    min_sstable_size: Option<String>,

    /// Size of the SSTables of leveled, in whole MiB, or that unified aims at (target_sstable_size). Default:
    /// schema.cql's, otherwise 160MiB, for unified 1GiB.
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    sstable_size: Option<String>,

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
    /// The strategy that is chosen for a table.
    ///
    /// # Errors
    /// An option that is set twice, or values that cannot be converted.
    pub fn choice(&self, table: &Table) -> Result<StrategyChoice, Error> {
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
        for (name, value) in self.options(&choice.class_for(table))? {
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

    /// Options of a class by Cassandra's names.
    fn options(&self, class: &str) -> Result<Vec<(String, String)>, Error> {
        let flags = [
            ("min-threshold", &self.min_threshold),
            ("max-threshold", &self.max_threshold),
            ("bucket-low", &self.bucket_low),
            ("bucket-high", &self.bucket_high),
            ("min-sstable-size", &self.min_sstable_size),
            ("sstable-size", &self.sstable_size),
            ("fanout-size", &self.fanout_size),
            ("scaling-parameters", &self.scaling_parameters),
            ("window", &self.window),
            ("levels", &self.levels),
        ];
        let mut options = self.strategy_option.clone();
        for (name, value) in flags {
            if let Some(value) = value {
                options.extend(converted(class, name, value)?);
            }
        }
        Ok(options)
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

/// Options of a class by Cassandra's names, for an option of the command.
///
/// # Errors
/// A value that cannot be converted, or an option that the strategy does not have.
pub fn converted(class: &str, name: &str, value: &str) -> Result<Vec<(String, String)>, Error> {
    let [_, leveled, time_window, unified, _] = CLASSES;
    let pairs = match name {
        "sstable-size" if class == leveled => vec![("sstable_size_in_mb", whole_mib(value)?)],
        "sstable-size" if class == unified => {
            let size: ByteSize = parsed(name, value)?;
            vec![("target_sstable_size", format!("{}B", size.0))]
        }
        "min-sstable-size" => {
            let ByteSize(bytes) = parsed(name, value)?;
            // Only unified reads a unit, and it needs one.
            let unit = if class == unified { "B" } else { "" };
            vec![("min_sstable_size", format!("{bytes}{unit}"))]
        }
        "window" if class == time_window => {
            let (unit, count) = window(value)?;
            vec![
                ("compaction_window_size", count.to_string()),
                ("compaction_window_unit", unit.to_owned()),
            ]
        }
        "levels" => vec![("level_count", value.to_owned())],
        "sstable-size" | "window" => {
            return Err(Error::invalid(format!("--{name} is no option of {class}")));
        }
        _ => return Ok(vec![(name.replace('-', "_"), value.to_owned())]),
    };
    let owned = pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    Ok(owned.collect())
}

fn parsed<T: std::str::FromStr<Err = String>>(name: &str, value: &str) -> Result<T, Error> {
    value
        .parse()
        .map_err(|error| Error::invalid(format!("--{name}: {error}")))
}

fn whole_mib(value: &str) -> Result<String, Error> {
    let ByteSize(bytes) = parsed("sstable-size", value)?;
    if bytes.is_multiple_of(1 << 20) {
        Ok((bytes >> 20).to_string())
    } else {
        Err(Error::invalid(format!(
            "--sstable-size {value}: sstable_size_in_mb is a whole number of MiB"
        )))
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
