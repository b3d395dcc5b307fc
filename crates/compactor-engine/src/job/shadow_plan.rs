//! Plan of the overlapping SSTables that are read for what they shadow.
//!
//! Source: `CompactionController.getShadowIterator`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::{Arc, Mutex, Weak};

use compactor_io::{Io, ReadMode, lock};
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;
use compactor_sstable::partitioner::Position;
use compactor_sstable::statistics::EncodingStats;

use crate::error::{Error, Result};
use crate::input::header_union::{
    HeaderSource, check_schema, column_map, layout_of, types_of_schema, union,
};
use crate::input::key_range::DecoratedKey;
use crate::input::range_input::RangeInput;
use crate::input::split_index::SplitIndex;
use crate::input::sstable::InputSstable;
use crate::job::options::MergeOptions;
use crate::job::tombstone_option::TombstoneOption;
use crate::job::tombstone_sources::TombstoneSource;
use crate::merge::shadow_sources::{ShadowLayout, ShadowSources, SourceRange};
use crate::read::decode::DecodedBlocks;
use crate::read::reading::Reading;
use crate::row::dropped_columns::{DropTimes, RemovedColumns};
use crate::write::sstable_settings::SstableSettings;

/// Uncompressed bytes between their index samples.
const PLACES_LEN: u64 = 1 << 20;

/// Overlapping SSTables that are read along with a merge.
#[derive(Debug)]
pub(crate) struct ShadowPlan {
    /// Ordered by first key.
    ranges: Arc<[SourceRange]>,
    sstables: Vec<Shared>,
    layout: ShadowLayout,
    max_concurrent: usize,
}

/// An overlapping SSTable that is read in ranges.
#[derive(Debug)]
struct Shared {
    sstable: Arc<InputSstable>,
    /// Open file, while a range reads it.
    opened: Mutex<Weak<Opened>>,
}

#[derive(Debug)]
struct Opened {
    input: RangeInput,
    /// `None` if the merge is not split.
    places: Option<SplitIndex>,
}

impl ShadowPlan {
    /// Decides which are read for a merge of these inputs to an output with these settings. `None` if there
    /// are none.
    ///
    /// # Errors
    /// An SSTable that disagrees with the table's schema.
    pub(crate) fn decide<'i>(
        options: &MergeOptions,
        inputs: impl Iterator<Item = &'i InputSstable> + Clone,
        settings: &SstableSettings,
        tombstone_sources: &[TombstoneSource],
    ) -> Result<Option<ShadowPlan>> {
        let by_cell = options.overlapping_tombstones == TombstoneOption::Cell;
        let timestamps = (inputs.clone()).map(|i| i.statistics.stats.min_timestamp);
        let min_timestamp = timestamps.min().unwrap_or(i64::MAX);
        let may_shadow = |tombstone_source: &&TombstoneSource| {
            let stats = &tombstone_source.sstable.statistics.stats;
            stats.max_timestamp > min_timestamp
                && (by_cell || stats.min_local_deletion_time != NO_DELETION_TIME)
        };
        let mut tombstone_sources: Vec<TombstoneSource> = tombstone_sources
            .iter()
            .filter(may_shadow)
            .cloned()
            .collect();
        if tombstone_sources.is_empty() {
            return Ok(None);
        }
        tombstone_sources.sort_by(|a, b| a.keys.first().cmp(&b.keys.first()));
        let max_concurrent = max_concurrent(&tombstone_sources);
        let layout = layout(options, settings, &tombstone_sources, by_cell)?;
        let mut ranges = Vec::with_capacity(tombstone_sources.len());
        let mut sstables = Vec::with_capacity(tombstone_sources.len());
        for TombstoneSource { keys, sstable } in tombstone_sources {
            let map = column_map(&sstable.layout()?, &layout.layout)?;
            ranges.push(SourceRange { keys, map });
            let opened = Mutex::default();
            sstables.push(Shared { sstable, opened });
        }
        Ok(Some(ShadowPlan {
            ranges: ranges.into(),
            sstables,
            layout,
            max_concurrent,
        }))
    }

    /// Number of SSTables that are read.
    pub(crate) fn len(&self) -> usize {
        self.sstables.len()
    }

    /// Maximum number of them that are open at a time.
    pub(crate) fn max_concurrent(&self) -> usize {
        self.max_concurrent
    }

    /// Longest unit in which one of them is decoded, bytes.
    pub(crate) fn block_unit(&self) -> usize {
        let units = self.sstables().map(InputSstable::block_unit);
        units.max().unwrap_or(0)
    }

    pub(crate) fn sstables(&self) -> impl Iterator<Item = &InputSstable> {
        self.sstables.iter().map(|shared| &*shared.sstable)
    }

    /// Returns sources of their partitions between two split points.
    pub(crate) fn start(
        self: &Arc<Self>,
        io: &Io,
        mode: ReadMode,
        reading: Reading,
        (from, below): (Option<Position>, Option<Position>),
    ) -> ShadowSources<DecodedBlocks> {
        let plan = Arc::clone(self);
        let io = io.clone();
        // Kept open for ranges that are read concurrently.
        let mut kept = VecDeque::new();
        let open = move |number: usize| {
            let opened = plan.open(number, &io, mode, from.or(below).is_some())?;
            let Opened { input, places } = &*opened;
            let place = |split: Option<Position>, otherwise: u64| match (split, places) {
                (Some(split), Some(places)) => {
                    places.first_from(split, |at| input.key_at(at, &reading))
                }
                _ => Ok(otherwise),
            };
            let bounds = (place(from, 0)?, place(below, input.data_len())?);
            let cursor = input.cursor(bounds, (from, below), reading.clone())?;
            kept.push_back(opened);
            if kept.len() > plan.max_concurrent {
                kept.pop_front();
            }
            Ok(cursor)
        };
        let ranges = Arc::clone(&self.ranges);
        ShadowSources::new(self.layout.clone(), ranges, Box::new(open))
    }

    fn open(&self, number: usize, io: &Io, mode: ReadMode, is_cut: bool) -> Result<Arc<Opened>> {
        let Some(shared) = self.sstables.get(number) else {
            return Err(Error::internal("an overlapping SSTable beyond the last"));
        };
        let mut known = lock(&shared.opened);
        if let Some(opened) = known.upgrade() {
            return Ok(opened);
        }
        let sstable = &shared.sstable;
        let opened = Arc::new(Opened {
            input: RangeInput::open(io, sstable)?,
            places: if is_cut {
                Some(SplitIndex::open(io, sstable, mode, PLACES_LEN)?)
            } else {
                None
            },
        });
        *known = Arc::downgrade(&opened);
        Ok(opened)
    }
}

/// Returns the layout over the output and all sources.
fn layout(
    options: &MergeOptions,
    settings: &SstableSettings,
    tombstone_sources: &[TombstoneSource],
    by_cell: bool,
) -> Result<ShadowLayout> {
    let of_output = HeaderSource {
        descriptor: &settings.descriptor,
        header: &settings.header,
    };
    let others = tombstone_sources.iter().map(|s| s.sstable.header_source());
    let all: Vec<HeaderSource<'_>> = [of_output].into_iter().chain(others).collect();
    let mut header = union(&all, EncodingStats::default())?;
    let mut drops = DropTimes::default();
    let mut removed = RemovedColumns::default();
    if let Some(table) = &options.table {
        for source in &all[1..] {
            check_schema(table, source)?;
            DropTimes::of(table, source.header, &source.path())?;
        }
        types_of_schema(table, &mut header);
        drops = DropTimes::of(table, &header, &of_output.path())?;
        removed = RemovedColumns::of(table, &settings.header);
    }
    let layout = layout_of(&header, settings.descriptor.version)?;
    let output = layout_of(&settings.header, settings.descriptor.version)?;
    Ok(ShadowLayout {
        output: column_map(&output, &layout)?,
        layout: Arc::new(layout),
        drops,
        removed,
        by_cell,
        strips_ttl: options.strip_ttl,
    })
}

/// Maximum number of them whose key ranges overlap at one key. They are ordered by first key.
fn max_concurrent(tombstone_sources: &[TombstoneSource]) -> usize {
    let mut open: BinaryHeap<Reverse<DecoratedKey<'_>>> = BinaryHeap::new();
    let mut most = 0;
    for tombstone_source in tombstone_sources {
        while open
            .peek()
            .is_some_and(|last| last.0 < tombstone_source.keys.first())
        {
            open.pop();
        }
        open.push(Reverse(tombstone_source.keys.last()));
        most = most.max(open.len());
    }
    most
}
