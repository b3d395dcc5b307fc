//! Which of the SSTables beside a merge are read for what they shadow in it.
//!
//! Source: `CompactionController.getShadowIterator`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use compactor_io::{Io, ReadMode};
use compactor_sstable::Component;
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;
use compactor_sstable::statistics::EncodingStats;
use compactor_sstable::statistics::commit_log::IntervalSet;
use compactor_sstable::statistics::stats::StatsMetadata;

use crate::decode::{DecodeOptions, DecodedBlocks};
use crate::dropped_columns::{DropTimes, GoneColumns};
use crate::error::{Error, Result};
use crate::header_union::{
    HeaderSource, check_schema, column_map, layout_of, types_of_schema, union,
};
use crate::input::{InputSstable, read_small};
use crate::key_range::{KeyRange, Place};
use crate::merge_job::{MergeOptions, block_unit};
use crate::rate_limiter::RateLimiter;
use crate::shadow_sources::{ShadowLayout, ShadowSources, SourceRange};
use crate::sstable_writer::SstableSettings;
use crate::tombstone_option::TombstoneOption;
use crate::workers::WorkerQueue;

/// What is read beside a merge.
#[derive(Debug)]
pub(crate) struct ShadowPlan {
    /// By their first keys.
    sources: Vec<(SourceRange, InputSstable)>,
    layout: ShadowLayout,
    at_once: usize,
}

/// An SSTable that may be read beside a merge.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) keys: KeyRange,
    pub(crate) sstable: InputSstable,
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
        let sources = providers
            .into_iter()
            .map(|provider| {
                let Provider { keys, sstable } = provider;
                let map = column_map(&sstable.layout, &layout.layout)?;
                Ok((SourceRange { keys, map }, sstable))
            })
            .collect::<Result<_>>()?;
        Ok(Some(ShadowPlan {
            sources,
            layout,
            at_once,
        }))
    }

    /// How many SSTables are read.
    pub(crate) fn len(&self) -> usize {
        self.sources.len()
    }

    /// How many of them are open at a time, at most.
    pub(crate) fn at_once(&self) -> usize {
        self.at_once
    }

    /// The most uncompressed bytes that one of them is decoded by at least.
    pub(crate) fn block_unit(&self) -> usize {
        let units = self.sources.iter().map(|(_, sstable)| block_unit(sstable));
        units.max().unwrap_or(0)
    }

    /// Their bytes are decoded by the workers of `queue`.
    pub(crate) fn start(
        self,
        io: Io,
        decode: DecodeOptions,
        queue: WorkerQueue,
        cancelled: Arc<AtomicBool>,
        limiter: Option<Arc<RateLimiter>>,
    ) -> ShadowSources<DecodedBlocks> {
        let (ranges, mut sstables): (Vec<_>, Vec<_>) = self.sources.into_iter().unzip();
        let open = move |number: usize| match sstables.get_mut(number) {
            Some(sstable) => sstable.start(
                &io,
                decode,
                queue.clone(),
                Arc::clone(&cancelled),
                limiter.clone(),
            ),
            None => Err(Error::Internal(
                "an overlapping SSTable too many".to_owned(),
            )),
        };
        ShadowSources::new(self.layout, ranges, Box::new(open))
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

/// An SSTable in a snapshot and the same in the table's directory. It would take its own deletions away,
/// and whoever replaces it has them nowhere. Its id may differ, after `nodetool import`, and so may what a
/// node sets in a file that stays: level and repair state.
pub(crate) fn is_copy(io: &Io, mode: ReadMode, input: &InputSstable, other: &InputSstable) -> bool {
    let of_the_data = |sstable: &InputSstable| StatsMetadata {
        level: 0,
        repaired_at: 0,
        pending_repair: None,
        is_transient: false,
        originating_host_id: None,
        commit_log_intervals: IntervalSet::default(),
        // Where it is not known it is NaN, which equals nothing.
        token_space_coverage: 0.0,
        ..sstable.statistics.stats.clone()
    };
    let digest = |sstable: &InputSstable| {
        let path = sstable.descriptor.path(Component::Digest);
        read_small(io, mode, &path).ok()
    };
    let may_differ = || match (digest(input), digest(other)) {
        (Some(a), Some(b)) => a != b,
        _ => false,
    };
    input.data.len() == other.data.len()
        && of_the_data(input) == of_the_data(other)
        && !may_differ()
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
