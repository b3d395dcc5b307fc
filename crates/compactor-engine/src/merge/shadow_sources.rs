//! Overlapping SSTables that are read along with a merge for what they shadow in it, and never written.
//!
//! They are followed in key order, each from when the merge reaches its first key until it has passed its
//! last. At a partition that the merge has as well, they are merged with one another, one row or marker at a
//! time, no further than the merge has advanced, except for the first that is not empty.
//!
//! Source: `CompactionController.shadowSources`,
//! `CompactionIterator.GarbageSkippingUnfilteredRowIterator`.

use std::cmp::Ordering;
use std::sync::Arc;

use compactor_sstable::data::clustering::{Kind, Prefix};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::Layout;

use crate::error::{Error, Result};
use crate::input::header_union::ColumnMap;
use crate::input::key_range::{DecoratedKey, KeyRange};
use crate::merge::marker::{DeletionChange, effective};
use crate::merge::tournament::Tournament;
use crate::read::cursor::Cursor;
use crate::read::window::BlockSource;
use crate::row::dropped_columns::{DropTimes, RemovedColumns};
use crate::row::purge::Purger;
use crate::row::purge_counts::PurgeCounts;
use crate::row::row_merge::{RowContext, RowMerger};
use crate::row::row_shadow::{RowShadow, ShadowingRow};
use crate::row::row_version::{Version, VersionError};

mod source;

use source::{Reading, Source, compare};

/// Opens the SSTable with this number.
pub type OpenSource<S> = Box<dyn FnMut(usize) -> Result<Cursor<S>> + Send>;

/// An SSTable that has not been opened yet.
#[derive(Clone, Debug)]
pub struct SourceRange {
    /// Its first and last partition.
    pub keys: KeyRange,
    /// Index of each of its columns in the layout of all sources.
    pub map: ColumnMap,
}

/// Layout and options with which sources are read.
#[derive(Clone, Debug)]
pub struct ShadowLayout {
    /// Columns of all sources and inputs.
    pub layout: Arc<Layout>,
    /// Index in `layout` of each column of the output.
    pub output: ColumnMap,
    /// Drop times of these columns.
    pub drops: DropTimes,
    /// Columns of the output that the table no longer has: in a partition that the sources have, their cells
    /// are removed whenever they were written, unless rows are compared cell by cell.
    pub removed: RemovedColumns,
    /// Whether cells are compared as well, and not only deletions of partitions, ranges and rows.
    pub by_cell: bool,
    /// Whether cells are compared as if they had no TTL, because those of the merge lose theirs. A copy of a
    /// cell of the merge would otherwise win over it.
    pub strips_ttl: bool,
}

/// All sources of a merge.
pub struct ShadowSources<S> {
    layout: ShadowLayout,
    /// Sources ordered by first key.
    ranges: Arc<[SourceRange]>,
    open_source: OpenSource<S>,
    /// Index of the first source that has not been opened.
    next: usize,
    sources: Vec<Source<S>>,
    /// Sources that have the partition, and those of them at the current position in it.
    group: Vec<usize>,
    step: Vec<u32>,
    clusterings: Tournament,
    rows: RowMerger,
    partition_deletion: DeletionTime,
    /// Newest deletion of the partition or a range at the current position.
    active: DeletionTime,
    /// Range tombstone open in the merge, and the one that was written.
    data_open: DeletionTime,
    issued: DeletionTime,
    /// Whether a marker of a source is at the position of the merge's marker.
    has_marker_here: bool,
    steps: u32,
    /// Reused: a bound of a source.
    bound: Vec<u8>,
}

impl<S> std::fmt::Debug for ShadowSources<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShadowSources")
            .field("sources", &self.ranges.len())
            .field("opened", &self.next)
            .finish_non_exhaustive()
    }
}

impl<S: BlockSource> ShadowSources<S> {
    /// Creates sources ordered by their first keys. Each is opened by `open_source` when it is needed.
    pub fn new(
        layout: ShadowLayout,
        ranges: impl Into<Arc<[SourceRange]>>,
        open_source: OpenSource<S>,
    ) -> ShadowSources<S> {
        let rows = RowMerger::new(Arc::clone(&layout.layout))
            .with_drops(&layout.drops)
            .stripping_ttl(layout.strips_ttl);
        ShadowSources {
            layout,
            ranges: ranges.into(),
            open_source,
            next: 0,
            sources: Vec::new(),
            group: Vec::new(),
            step: Vec::new(),
            clusterings: Tournament::default(),
            rows,
            partition_deletion: DeletionTime::LIVE,
            active: DeletionTime::LIVE,
            data_open: DeletionTime::LIVE,
            issued: DeletionTime::LIVE,
            has_marker_here: false,
            steps: 0,
            bound: Vec::new(),
        }
    }

    /// Advances to a partition of the merge, after the last one.
    ///
    /// # Errors
    /// Damage in a source, a failed read, or cancellation.
    pub fn seek(&mut self, place: DecoratedKey<'_>, is_cancelled: &dyn Fn() -> bool) -> Result<()> {
        let ranges = &self.ranges;
        self.sources.retain(|s| {
            s.cursor.has_partition() && ranges.get(s.number).is_some_and(|r| place <= r.keys.last())
        });
        while let Some(range) = self.ranges.get(self.next)
            && range.keys.first() <= place
        {
            // Sources that end before it are not opened.
            if place <= range.keys.last() {
                let mut cursor = (self.open_source)(self.next)?;
                cursor.next_partition()?;
                self.sources.push(Source::start(self.next, cursor));
            }
            self.next += 1;
        }
        self.group.clear();
        self.partition_deletion = DeletionTime::LIVE;
        for (index, source) in self.sources.iter_mut().enumerate() {
            while source.cursor.has_partition() && source.place() < place {
                source.skip_partition(&mut self.steps, is_cancelled)?;
            }
            if !source.cursor.has_partition() || source.place() != place {
                continue;
            }
            let deletion = source.cursor.partition_deletion();
            self.partition_deletion = self.partition_deletion.max(deletion);
            // A source without relevant content is treated as if it did not have the partition.
            let is_there = !deletion.is_live()
                || match self.ranges.get(source.number) {
                    Some(range) if self.layout.by_cell => {
                        let mut reading = Reading {
                            rows: &mut self.rows,
                            steps: &mut self.steps,
                            is_cancelled,
                        };
                        source.has_anything(&range.map, &mut reading)?
                    }
                    // Static rows are not compared.
                    _ => {
                        source.begin(false)?;
                        !source.is_at_end
                    }
                };
            if is_there {
                self.group.push(index);
            }
        }
        self.active = self.partition_deletion;
        self.data_open = DeletionTime::LIVE;
        self.issued = DeletionTime::LIVE;
        self.has_marker_here = false;
        Ok(())
    }

    /// Whether some source has the partition.
    pub fn is_here(&self) -> bool {
        !self.group.is_empty()
    }

    /// Returns the partition deletion, or a live one if it is shadowed.
    pub fn shadow_partition_deletion(&self, deletion: DeletionTime) -> DeletionTime {
        if deletion.supersedes(&self.partition_deletion) {
            deletion
        } else {
            DeletionTime::LIVE
        }
    }

    /// Returns the data that shadows the static row.
    ///
    /// # Errors
    /// Damage in a source.
    pub fn static_row_shadow(&mut self) -> Result<RowShadow<'_>> {
        if !self.layout.by_cell {
            let removed = self.layout.removed.of_kind(true);
            return Ok(RowShadow::of_deletion(self.active, removed));
        }
        self.step.clear();
        let with_static = |index: &usize| self.sources[*index].cursor.static_row().is_some();
        let places = (0u32..).zip(&self.group);
        let with = places.filter(|(_, index)| with_static(index));
        self.step.extend(with.map(|(place, _)| place));
        self.merged_row_shadow(true)
    }

    /// Begins with rows and markers.
    ///
    /// # Errors
    /// Damage in a source.
    pub fn begin_rows(&mut self) -> Result<()> {
        for &index in &self.group {
            let source = &mut self.sources[index];
            source.open = DeletionTime::LIVE;
            source.begin(self.layout.by_cell)?;
        }
        let (sources, layout, group) = (&self.sources, &self.layout.layout, &self.group);
        self.clusterings
            .start(group.len(), |a, b| compare(sources, layout, group, a, b));
        self.step.clear();
        self.clusterings.winners(&mut self.step);
        Ok(())
    }

    /// Advances to the position of the merge. Where a deletion ends under which a range tombstone of the
    /// merge is hidden, calls `reopen` with the bound and the change at it.
    ///
    /// # Errors
    /// Damage in a source, or the error of `reopen`.
    pub(crate) fn advance(
        &mut self,
        to: Prefix<'_>,
        reopen: impl FnMut(&mut [u8], DeletionChange) -> Result<()>,
    ) -> Result<()> {
        let mut bound = std::mem::take(&mut self.bound);
        let result = self.advance_noting(to, &mut bound, reopen);
        self.bound = bound;
        result
    }

    fn advance_noting(
        &mut self,
        to: Prefix<'_>,
        bound: &mut Vec<u8>,
        mut reopen: impl FnMut(&mut [u8], DeletionChange) -> Result<()>,
    ) -> Result<()> {
        loop {
            let Some(at) = self.position() else {
                return Ok(());
            };
            let order = self.layout.layout.clustering.compare(at, to);
            if order == Ordering::Greater {
                return Ok(());
            }
            if at.kind == Kind::Clustering {
                if order == Ordering::Equal {
                    return Ok(());
                }
                self.pass()?;
                continue;
            }
            let side = at.kind.compared_to_clustering();
            if self.is_hiding() {
                bound.clear();
                let values = at.spans.iter().map(|span| span.of(at.base));
                let clustering = &self.layout.layout.clustering;
                clustering.write_prefix(bound, Kind::InclStartBound, values);
            }
            self.pass_markers()?;
            if order == Ordering::Equal {
                self.has_marker_here = true;
                return Ok(());
            }
            if let Some(open) = self.reopened() {
                let change = DeletionChange {
                    side,
                    before: DeletionTime::LIVE,
                    after: open,
                };
                reopen(bound, change)?;
            }
        }
    }

    /// Returns the remaining deletions that a marker of the merge closes and opens, at the position it was
    /// advanced to. `after` is the deletion open after the marker.
    pub fn shadow_marker(&mut self, after: DeletionTime) -> (DeletionTime, DeletionTime) {
        self.has_marker_here = false;
        self.data_open = after;
        let close = self.issued;
        self.issued = if after.supersedes(&self.active) {
            after
        } else {
            DeletionTime::LIVE
        };
        (close, self.issued)
    }

    /// Called if the merge writes no marker after all. Returns the range tombstone that is no longer hidden
    /// from here on, if there is one.
    pub fn reopen_without_marker(&mut self) -> Option<DeletionTime> {
        let has_marker = std::mem::take(&mut self.has_marker_here);
        has_marker.then(|| self.reopened()).flatten()
    }

    /// Whether nothing shadows the row of the merge at the position it was advanced to.
    pub fn shadows_nothing(&self) -> bool {
        !self.is_here()
            || self.active.is_live()
                && !self.has_row_here()
                && self.layout.removed.of_kind(false).is_empty()
    }

    /// Returns the data that shadows the row of the merge at the position it was advanced to.
    ///
    /// # Errors
    /// Damage in a source.
    pub fn row_shadow(&mut self, at: Prefix<'_>) -> Result<RowShadow<'_>> {
        let clustering = &self.layout.layout.clustering;
        let is_there = self.has_row_here()
            && (self.position()).is_some_and(|own| clustering.compare(own, at).is_eq());
        if is_there && self.layout.by_cell {
            return self.merged_row_shadow(false);
        }
        let mut deletion = self.active;
        for &place in self.step.iter().filter(|_| is_there) {
            let cursor = &self.sources[self.group[place as usize]].cursor;
            if let Some(row) = cursor.row() {
                let start = row.start();
                let start = start.map_err(|fault| cursor.locate_error(fault.describe(&row)))?;
                deletion = deletion.max(start.deletion);
            }
        }
        let removed = self.layout.removed.of_kind(false);
        Ok(RowShadow::of_deletion(deletion, removed))
    }

    /// Returns the merged rows of `step`, to be compared with cell by cell.
    fn merged_row_shadow(&mut self, is_static: bool) -> Result<RowShadow<'_>> {
        let deletion = self.active;
        let source = |place: u32| &self.sources[self.group[place as usize]];
        let version = |place: &u32| {
            let source = source(*place);
            let row = if is_static {
                source.cursor.static_row()
            } else {
                source.cursor.row()
            };
            let map = self.ranges[source.number].map.of_kind(is_static);
            Some(Version { row: row?, map })
        };
        let mut versions: Vec<Version<'_>> = self.step.iter().filter_map(version).collect();
        // Rows with nothing but data of dropped columns are not read (`UnfilteredSerializer.deserialize`).
        if !is_static && versions.len() > 1 && self.rows.has_dropped_columns() {
            let all = std::mem::take(&mut versions);
            for (place, version) in self.step.iter().zip(all) {
                let counts = &mut PurgeCounts::default();
                let is_left = self.rows.is_anything_left(false, version, counts);
                if is_left.map_err(|error| source(*place).cursor.locate_error(error))? {
                    versions.push(version);
                }
            }
        }
        let context = RowContext {
            is_static,
            // A single source is not merged; several are, under their deletions
            // (`UnfilteredRowIterators.merge`).
            active: match self.group.len() {
                1 => DeletionTime::LIVE,
                _ => deletion,
            },
            inputs: if is_static {
                self.group.len()
            } else {
                versions.len()
            },
            visits: None,
            purger: &Purger::KEEP_ALL,
            shadow: None,
        };
        let counts = &mut PurgeCounts::default();
        let merged = self.rows.merge(&versions, &context, counts);
        let row = merged.map_err(
            |VersionError { number, error }| match self.step.get(number) {
                Some(place) => source(*place).cursor.locate_error(error),
                None => Error::Format(error),
            },
        )?;
        // The merged row may be empty. An empty static row still counts as one.
        if row.is_empty() && !is_static {
            let removed = self.layout.removed.of_kind(is_static);
            return Ok(RowShadow::of_deletion(deletion, removed));
        }
        let above = ShadowingRow {
            row,
            versions,
            columns: self.layout.output.of_kind(is_static),
        };
        Ok(RowShadow::by_cell(
            deletion,
            (!row.is_empty()).then_some(above),
        ))
    }

    /// Current position of the sources.
    fn position(&self) -> Option<Prefix<'_>> {
        let place = *self.step.first()?;
        self.sources[self.group[place as usize]].cursor.clustering()
    }

    fn has_row_here(&self) -> bool {
        self.position()
            .is_some_and(|at| at.kind == Kind::Clustering)
    }

    /// Whether a range tombstone is open in the merge that was not written.
    fn is_hiding(&self) -> bool {
        self.issued.is_live() && !self.data_open.is_live()
    }

    /// Returns the range tombstone of the merge if it is no longer hidden.
    fn reopened(&mut self) -> Option<DeletionTime> {
        if !self.is_hiding() || !self.data_open.supersedes(&self.active) {
            return None;
        }
        self.issued = self.data_open;
        Some(self.issued)
    }

    /// Advances past the markers at the current position.
    fn pass_markers(&mut self) -> Result<()> {
        loop {
            for &place in &self.step {
                let source = &mut self.sources[self.group[place as usize]];
                if let Some(marker) = source.cursor.marker() {
                    source.open = marker.open;
                }
            }
            let opens = self.group.iter().map(|index| self.sources[*index].open);
            let open = opens.fold(DeletionTime::LIVE, DeletionTime::max);
            self.active = effective(open, self.partition_deletion).max(self.partition_deletion);
            self.pass()?;
            // A bound that opens where another has just closed makes one boundary with it.
            let continues = |place: &u32| {
                let source = &self.sources[self.group[*place as usize]];
                !source.is_at_end && source.cursor.is_second_half()
            };
            if !self.step.iter().any(continues) {
                return Ok(());
            }
        }
    }

    /// Advances past the current position.
    fn pass(&mut self) -> Result<()> {
        for &place in &self.step {
            let source = &mut self.sources[self.group[place as usize]];
            source.next_unfiltered(self.layout.by_cell)?;
        }
        let (sources, layout, group) = (&self.sources, &self.layout.layout, &self.group);
        self.clusterings.replay(self.step.iter().copied(), |a, b| {
            compare(sources, layout, group, a, b)
        });
        self.step.clear();
        self.clusterings.winners(&mut self.step);
        if self.position().is_none() {
            self.step.clear();
        }
        Ok(())
    }
}
