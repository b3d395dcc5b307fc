//! Which of the SSTables beside a merge are read for what they shadow in it.
//!
//! Source: `CompactionController.getShadowIterator`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use compactor_io::{Io, ReadMode};
use compactor_sstable::Component;
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;
use compactor_sstable::partitioner::Position;
use compactor_sstable::statistics::EncodingStats;

use crate::error::{Error, Result};
use crate::input::header_union::{
    HeaderSource, check_schema, column_map, layout_of, types_of_schema, union,
};
use crate::input::key_range::Place;
use crate::input::range_input::{Part, RangeInput, Reading};
use crate::input::range_places::RangePlaces;
use crate::input::sstable::InputSstable;
use crate::job::options::MergeOptions;
use crate::job::overlapping::Provider;
use crate::job::tombstone_option::TombstoneOption;
use crate::merge::shadow_sources::{ShadowLayout, ShadowSources, SourceRange};
use crate::read::decode::DecodedBlocks;
use crate::row::dropped_columns::{DropTimes, GoneColumns};
use crate::write::sstable_writer::SstableSettings;

/// Uncompressed bytes between places of them that are known.
const PLACES_LEN: u64 = 1 << 20;

/// What is read beside a merge.
#[derive(Debug)]
pub(crate) struct ShadowPlan {
    /// By their first keys.
    ranges: Arc<[SourceRange]>,
    sstables: Vec<Shared>,
    layout: ShadowLayout,
    at_once: usize,
}

/// An SSTable that is read beside a merge, in ranges.
#[derive(Debug)]
struct Shared {
    sstable: InputSstable,
    /// While some range reads it.
    opened: Mutex<Weak<Opened>>,
}

#[derive(Debug)]
struct Opened {
    input: RangeInput,
    /// `None` where a merge is not cut.
    places: Option<RangePlaces>,
}

impl ShadowPlan {
    /// Decides for a merge of these inputs to an output of these settings. `None` if nothing is to be read.
    ///
    /// # Errors
    /// Of an SSTable that is not of the table as the schema has it.
    pub(crate) fn decide<'i>(
        options: &MergeOptions,
        inputs: impl Iterator<Item = &'i InputSstable> + Clone,
        settings: &SstableSettings,
        mut providers: Vec<Provider>,
    ) -> Result<Option<ShadowPlan>> {
        let by_cell = options.overlapping_tombstones == TombstoneOption::Cell;
        let timestamps = (inputs.clone()).map(|i| i.statistics.stats.min_timestamp);
        let min_timestamp = timestamps.min().unwrap_or(i64::MAX);
        providers.retain(|provider| {
            let stats = &provider.sstable.statistics.stats;
            stats.max_timestamp > min_timestamp
                && (by_cell || stats.min_local_deletion_time != NO_DELETION_TIME)
        });
        if providers.is_empty() {
            return Ok(None);
        }
        providers.sort_by(|a, b| a.keys.first().cmp(&b.keys.first()));
        let at_once = most_at_once(&providers);
        let layout = layout(options, settings, &providers, by_cell)?;
        let mut ranges = Vec::with_capacity(providers.len());
        let mut sstables = Vec::with_capacity(providers.len());
        for Provider { keys, sstable } in providers {
            let map = column_map(&sstable.layout, &layout.layout)?;
            ranges.push(SourceRange { keys, map });
            let opened = Mutex::default();
            sstables.push(Shared { sstable, opened });
        }
        Ok(Some(ShadowPlan {
            ranges: ranges.into(),
            sstables,
            layout,
            at_once,
        }))
    }

    /// How many SSTables are read.
    pub(crate) fn len(&self) -> usize {
        self.sstables.len()
    }

    /// How many of them are open at a time, at most.
    pub(crate) fn at_once(&self) -> usize {
        self.at_once
    }

    /// The most uncompressed bytes that one of them is decoded by at least.
    pub(crate) fn block_unit(&self) -> usize {
        let units = self.sstables().map(InputSstable::block_unit);
        units.max().unwrap_or(0)
    }

    pub(crate) fn sstables(&self) -> impl Iterator<Item = &InputSstable> {
        self.sstables.iter().map(|shared| &shared.sstable)
    }

    /// Their partitions between two places of the ring.
    pub(crate) fn start(
        self: &Arc<Self>,
        io: &Io,
        mode: ReadMode,
        reading: Reading,
        (from, below): (Option<Position>, Option<Position>),
    ) -> ShadowSources<DecodedBlocks> {
        let plan = Arc::clone(self);
        let io = io.clone();
        // For ranges that read them meanwhile.
        let mut kept = VecDeque::new();
        let open = move |number: usize| {
            let opened = plan.open(number, &io, mode, from.or(below).is_some())?;
            let Opened { input, places } = &*opened;
            let place = |border: Option<Position>, otherwise: u64| match (border, places) {
                (Some(border), Some(places)) => {
                    places.first_from(border, |at| input.key_at(at, &reading))
                }
                _ => Ok(otherwise),
            };
            let (start, end) = (place(from, 0)?, place(below, input.data_len())?);
            if end < start {
                return Err(input.out_of_order(start, end));
            }
            let part = Part {
                start,
                end,
                from,
                below,
            };
            let cursor = input.cursor(&part, &reading);
            kept.push_back(opened);
            if kept.len() > plan.at_once {
                kept.pop_front();
            }
            Ok(cursor)
        };
        let ranges = Arc::clone(&self.ranges);
        ShadowSources::new(self.layout.clone(), ranges, Box::new(open))
    }

    fn open(&self, number: usize, io: &Io, mode: ReadMode, is_cut: bool) -> Result<Arc<Opened>> {
        let Some(shared) = self.sstables.get(number) else {
            return Err(Error::Internal(
                "an overlapping SSTable too many".to_owned(),
            ));
        };
        let mut known = shared.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = known.upgrade() {
            return Ok(opened);
        }
        let sstable = &shared.sstable;
        let opened = Arc::new(Opened {
            input: RangeInput::open(io, sstable)?,
            places: match is_cut {
                true => Some(RangePlaces::open(io, sstable, mode, PLACES_LEN)?),
                false => None,
            },
        });
        *known = Arc::downgrade(&opened);
        Ok(opened)
    }
}

/// The layout over the output and all providers.
fn layout(
    options: &MergeOptions,
    settings: &SstableSettings,
    providers: &[Provider],
    by_cell: bool,
) -> Result<ShadowLayout> {
    let output_path = settings.descriptor.path(Component::Statistics);
    let path = |provider: &Provider| provider.sstable.descriptor.path(Component::Statistics);
    let paths: Vec<PathBuf> = providers.iter().map(path).collect();
    let output = HeaderSource {
        path: &output_path,
        header: &settings.header,
    };
    let others = providers.iter().zip(&paths).map(|(provider, path)| {
        let header = provider.sstable.header();
        HeaderSource { path, header }
    });
    let all: Vec<HeaderSource<'_>> = [output].into_iter().chain(others).collect();
    let mut header = union(&all, EncodingStats::default())?;
    let mut drops = DropTimes::default();
    let mut gone = GoneColumns::default();
    if let Some(table) = &options.table {
        for source in &all[1..] {
            check_schema(table, source)?;
            DropTimes::of(table, source.header, source.path)?;
        }
        types_of_schema(table, &mut header);
        drops = DropTimes::of(table, &header, &output_path)?;
        gone = GoneColumns::of(table, &settings.header);
    }
    let layout = layout_of(&header, settings.descriptor.version)?;
    let output = layout_of(&settings.header, settings.descriptor.version)?;
    Ok(ShadowLayout {
        output: column_map(&output, &layout)?,
        layout: Arc::new(layout),
        drops,
        gone,
        by_cell,
    })
}

/// How many of them have room for one key, by their ranges. They come in the order of their first keys.
fn most_at_once(providers: &[Provider]) -> usize {
    let mut open: BinaryHeap<Reverse<Place<'_>>> = BinaryHeap::new();
    let mut most = 0;
    for provider in providers {
        while open
            .peek()
            .is_some_and(|last| last.0 < provider.keys.first())
        {
            open.pop();
        }
        open.push(Reverse(provider.keys.last()));
        most = most.max(open.len());
    }
    most
}
