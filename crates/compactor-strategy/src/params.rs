//! Strategy of a table with its options.
//!
//! Source: `schema.CompactionParams`.

use crate::level_count::{self, LevelCountOptions};
use crate::leveled::{Leveled, LeveledOptions};
use crate::options::{OptionError, Options, boolean};
use crate::release::Release;
use crate::size_tiered::{SizeTiered, SizeTieredOptions};
use crate::strategy::Strategy;
use crate::time_window::{TimeWindow, TimeWindowOptions};
use crate::unified::{Unified, UnifiedOptions};

/// Strategy of a table, as in `compaction = {...}`.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionParams {
    /// Whether the node compacts the table by itself (`enabled`).
    pub is_enabled: bool,
    /// Strategy and its options.
    pub strategy: StrategyOptions,
}

/// Options of each strategy.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StrategyOptions {
    /// `SizeTieredCompactionStrategy`.
    SizeTiered(SizeTieredOptions),
    /// `LeveledCompactionStrategy`.
    Leveled(LeveledOptions),
    /// `TimeWindowCompactionStrategy`.
    TimeWindow(TimeWindowOptions),
    /// `UnifiedCompactionStrategy`.
    Unified(UnifiedOptions),
    /// `LevelCountCompactionStrategy`, which Cassandra does not have.
    LevelCount(LevelCountOptions),
}

const SIZE_TIERED: &str = "SizeTieredCompactionStrategy";
const LEVELED: &str = "LeveledCompactionStrategy";
const TIME_WINDOW: &str = "TimeWindowCompactionStrategy";
const UNIFIED: &str = "UnifiedCompactionStrategy";
const LEVEL_COUNT: &str = level_count::CLASS;

/// Strategies by the names of their classes.
pub const CLASSES: [&str; 5] = [SIZE_TIERED, LEVELED, TIME_WINDOW, UNIFIED, LEVEL_COUNT];

impl CompactionParams {
    /// Size-tiered compaction with these options.
    pub fn size_tiered(options: SizeTieredOptions) -> CompactionParams {
        CompactionParams {
            is_enabled: true,
            strategy: StrategyOptions::SizeTiered(options),
        }
    }

    /// Parses the options of a class, which is named with its package or without.
    ///
    /// # Errors
    /// An unknown class, and options that this release refuses, with its messages.
    pub fn from_options(
        class: &str,
        options: &Options,
        release: Release,
    ) -> Result<CompactionParams, OptionError> {
        let name = class.rsplit('.').next().unwrap_or(class);
        let strategy = match name {
            SIZE_TIERED => StrategyOptions::SizeTiered(SizeTieredOptions::from_options(options)?),
            LEVELED => StrategyOptions::Leveled(LeveledOptions::from_options(options, release)?),
            TIME_WINDOW => StrategyOptions::TimeWindow(TimeWindowOptions::from_options(options)?),
            UNIFIED => StrategyOptions::Unified(UnifiedOptions::from_options(options, release)?),
            LEVEL_COUNT => StrategyOptions::LevelCount(LevelCountOptions::from_options(options)?),
            _ => {
                return Err(OptionError(format!(
                    "Unable to find compaction strategy class '{class}'; known are {}",
                    CLASSES.join(", ")
                )));
            }
        };
        let enabled = options.get("enabled");
        Ok(CompactionParams {
            is_enabled: enabled.and_then(|text| boolean(text)).unwrap_or(true),
            strategy,
        })
    }

    /// Sets whether only tombstones of repaired SSTables are purged (`only_purge_repaired_tombstones`).
    pub fn set_only_purge_repaired(&mut self, only_repaired: bool) {
        let tombstones = match &mut self.strategy {
            StrategyOptions::SizeTiered(options) => Some(&mut options.tombstones),
            StrategyOptions::Leveled(options) => Some(&mut options.tombstones),
            StrategyOptions::LevelCount(options) => Some(&mut options.leveled.tombstones),
            StrategyOptions::TimeWindow(options) => {
                options.expiry.only_repaired = only_repaired;
                options.tombstones.as_mut()
            }
            StrategyOptions::Unified(options) => {
                options.expiry.only_repaired = only_repaired;
                None
            }
        };
        if let Some(tombstones) = tombstones {
            tombstones.only_repaired = only_repaired;
        }
    }

    /// Name of the strategy's class, without its package.
    pub fn class(&self) -> &'static str {
        match self.strategy {
            StrategyOptions::SizeTiered(_) => SIZE_TIERED,
            StrategyOptions::Leveled(_) => LEVELED,
            StrategyOptions::TimeWindow(_) => TIME_WINDOW,
            StrategyOptions::Unified(_) => UNIFIED,
            StrategyOptions::LevelCount(_) => LEVEL_COUNT,
        }
    }

    /// A strategy for a group of SSTables.
    pub(crate) fn new_strategy(&self) -> Box<dyn Strategy> {
        match &self.strategy {
            StrategyOptions::SizeTiered(options) => Box::new(SizeTiered::new(*options)),
            StrategyOptions::Leveled(options) => Box::new(Leveled::new(*options)),
            StrategyOptions::TimeWindow(options) => Box::new(TimeWindow::new(*options)),
            StrategyOptions::Unified(options) => Box::new(Unified::new(options.clone())),
            StrategyOptions::LevelCount(options) => {
                Box::new(Leveled::new(options.leveled).with_sizing(options.sizing))
            }
        }
    }
}
