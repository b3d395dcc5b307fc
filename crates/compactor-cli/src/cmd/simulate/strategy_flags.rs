//! Options of the strategies.

use compactor::Error;
use compactor_strategy::release::Release;

use super::strategies::{Choice, add, has, set};
use crate::strategy_args::{ReleaseArg, name_and_value};

/// Options of the strategies. Each is refused with Cassandra's message.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Strategy")]
pub(super) struct StrategyFlags {
    /// Size of SSTables: sstable_size_in_mb of leveled, target_sstable_size of unified.
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    sstable_size: Option<String>,

    /// fanout_size of leveled and level-count.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    fanout_size: Option<String>,

    /// min_threshold of all but unified.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    min_threshold: Option<String>,

    /// max_threshold of all but unified.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    max_threshold: Option<String>,

    /// scaling_parameters of unified, such as T4 or L10.
    #[arg(long, value_name = "W,...", allow_hyphen_values = true)]
    scaling_parameters: Option<String>,

    /// Window of time-window, such as 1d or 6h: compaction_window_size and compaction_window_unit.
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    window: Option<String>,

    /// Number of levels of level-count.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    levels: Option<String>,

    /// Another option of the strategy by Cassandra's name; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    strategy_option: Vec<(String, String)>,

    /// Release of Cassandra whose rules and defaults apply.
    #[arg(long, value_enum, value_name = "RELEASE", default_value = "6.0")]
    release: ReleaseArg,
}

impl StrategyFlags {
    pub(super) fn release(&self) -> Release {
        self.release.into()
    }

    /// Sets the options of the strategies that have them.
    ///
    /// # Errors
    /// An option that none of them has or that is set twice, and values that cannot be converted.
    pub(super) fn apply(&self, choices: &mut [Choice]) -> Result<(), Error> {
        let flags = [
            ("sstable-size", &self.sstable_size),
            ("fanout-size", &self.fanout_size),
            ("min-threshold", &self.min_threshold),
            ("max-threshold", &self.max_threshold),
            ("scaling-parameters", &self.scaling_parameters),
            ("window", &self.window),
            ("levels", &self.levels),
        ];
        for (name, value) in flags {
            let Some(value) = value else { continue };
            let mut users = choices
                .iter_mut()
                .filter(|choice| has(choice, name))
                .peekable();
            if users.peek().is_none() {
                let classes: Vec<&str> = choices.iter().map(|choice| choice.class).collect();
                let classes = classes.join(", ");
                return Err(Error::invalid(format!(
                    "--{name} is no option of {classes}"
                )));
            }
            for choice in users {
                set(choice, name, value)?;
            }
        }
        for choice in choices {
            add(choice, self.strategy_option.iter().cloned())?;
        }
        Ok(())
    }
}
