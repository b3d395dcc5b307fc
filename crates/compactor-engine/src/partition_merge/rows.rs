//! Versions of a row, of one clustering or static, that become one: copied, merged in one go where they have
//! simple columns alone, transcoded, or reconciled cell by cell.

use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::flags;
use compactor_sstable::data::simple_row::SimpleRow;

use super::PartitionMerger;
use super::equal_places::{candidates, least_clustering};
use crate::error::{Error, Result};
use crate::merge_input::MergeInput;
use crate::newest_row::newest_plain;
use crate::partition_writer::{BlockOutput, PartitionWriter, TranscodeError};
use crate::purge::Purger;
use crate::row_merge::{PurgeCounts, RowContext, VersionError, Visits};
use crate::row_shadow::RowShadow;
use crate::shadow_sources::ShadowSources;
use crate::simple_merge::{MOST_VERSIONS, SimpleMerger, SimpleVersion};
use crate::sstable_index::SstableIndex;
use crate::window::BlockSource;

impl<S: BlockSource, B: BlockOutput, I: SstableIndex> PartitionMerger<S, B, I> {
    /// Writes what the static rows of these inputs come to.
    pub(super) fn merge_static_row(&mut self, group: &[u32], deletion: DeletionTime) -> Result<()> {
        if !self.output.has_static() {
            return Ok(());
        }
        let mut is_written = Ok(false);
        let writer = &mut self.writer;
        let inputs = &self.inputs;
        let with_static = || {
            group
                .iter()
                .map(|i| &inputs[*i as usize])
                .filter(|i| i.cursor.static_row().is_some())
        };
        let versions = with_static()
            .filter_map(|input| Some((input.cursor.static_row()?, input.map.of_kind(true))));
        let has_any = with_static().next().is_some();
        if has_any {
            let place = |(place, member): (usize, &u32)| {
                let row = inputs[*member as usize].cursor.static_row();
                row.is_some().then_some(place as u32)
            };
            if self.as_compaction {
                self.places.clear();
                self.places
                    .extend(group.iter().enumerate().filter_map(place));
            }
            let visits = Visits {
                places: &self.places,
                sources: group.len(),
            };
            let merge = |shadow: Option<RowShadow<'_>>| {
                let context = RowContext {
                    active: deletion,
                    inputs: group.len(),
                    visits: self.as_compaction.then_some(visits),
                    purger: &self.purger,
                    output: &self.output,
                    drops: &self.drops,
                    shadow,
                };
                let counts = &mut self.counts.purged;
                self.rows.merge(versions, &context, counts, |row| {
                    is_written = writer.add_row(true, &[], row, 16).map(|()| true);
                })
            };
            let merged = match &mut self.shadow {
                Some(shadow) if shadow.is_here() => {
                    shadow.over_static_row(|over| merge(Some(over)))?
                }
                _ => merge(None),
            };
            if let Err(VersionError { number, error }) = merged {
                let Some(input) = with_static().nth(number) else {
                    return Err(Error::Format(error));
                };
                return Err(input.cursor.place_error(error));
            }
        }
        // Every partition of a table with static columns has a static row: empty ones do not count.
        let counted = with_static().filter(|i| i.cursor.has_static_content());
        self.counts.rows_read += counted.count() as u64;
        if !is_written? {
            self.writer.add_empty_static_row();
        }
        Ok(())
    }

    /// Writes what the rows of these inputs at one clustering come to.
    pub(super) fn merge_rows(
        &mut self,
        members: &[u32],
        visits: Visits<'_>,
        active: DeletionTime,
    ) -> Result<()> {
        self.counts.rows_read += members.len() as u64;
        let is_clear =
            !self.has_counters && self.shadow.as_ref().is_none_or(ShadowSources::is_clear);
        if is_clear {
            if let Some(plain) = newest_plain(&self.inputs, members)
                && (active.is_live() || active.marked_for_delete_at < plain.liveness.timestamp)
                && self.writer.copy_row(&plain, &self.purger)?
            {
                return Ok(());
            }
            if self.merge_simple_rows(members, active)? {
                return Ok(());
            }
        }
        self.merge_rows_cell_by_cell(members, visits, active, is_clear)
    }

    /// As [`PartitionMerger::merge_rows`], of up to [`MOST_VERSIONS`] rows that have simple columns alone, of
    /// which none was dropped, with nothing over them outside the merge. Returns false, with nothing
    /// written, where they are others, or where one is damaged.
    fn merge_simple_rows(&mut self, members: &[u32], active: DeletionTime) -> Result<bool> {
        match members {
            [only] if self.inputs[*only as usize].same_clustering => {
                let version = simple_version(&self.inputs, *only);
                let (Some(version), Some(merger)) = (version, &mut self.simple_rows) else {
                    return Ok(false);
                };
                let into = SimpleOutput {
                    merger,
                    purger: &self.purger,
                    counts: &mut self.counts.purged,
                    writer: &mut self.writer,
                };
                into.merge(&[version], version.row.clustering(), active)
            }
            // As few as there are: all have to be filled.
            _ if members.len() <= 2 => self.merge_simple_versions::<2>(members, active),
            _ if members.len() <= 4 => self.merge_simple_versions::<4>(members, active),
            _ if members.len() <= 8 => self.merge_simple_versions::<8>(members, active),
            _ if members.len() <= MOST_VERSIONS => {
                self.merge_simple_versions::<MOST_VERSIONS>(members, active)
            }
            _ => Ok(false),
        }
    }

    /// As [`PartitionMerger::merge_simple_rows`], of up to so many rows.
    fn merge_simple_versions<const MOST: usize>(
        &mut self,
        members: &[u32],
        active: DeletionTime,
    ) -> Result<bool> {
        let Some(first) = simple_version(&self.inputs, members[0]) else {
            return Ok(false);
        };
        let mut versions = [first; MOST];
        for (version, &member) in versions.iter_mut().zip(members).skip(1) {
            match simple_version(&self.inputs, member) {
                Some(other) => *version = other,
                None => return Ok(false),
            }
        }
        let clustering = match same_clustering_bytes(&self.inputs, members) {
            true => first.row.clustering(),
            false => {
                let (inputs, output) = (&self.inputs, &self.output);
                let of = candidates(members, self.as_compaction);
                least_clustering(inputs, output, of, &mut self.prefix, &mut self.bound);
                &self.prefix
            }
        };
        let Some(merger) = &mut self.simple_rows else {
            return Ok(false);
        };
        let into = SimpleOutput {
            merger,
            purger: &self.purger,
            counts: &mut self.counts.purged,
            writer: &mut self.writer,
        };
        let versions = &versions[..members.len().min(MOST)];
        match MOST {
            2 => into.merge(versions, clustering, active),
            _ => into.merge_several(versions, clustering, active),
        }
    }

    /// As [`PartitionMerger::merge_rows`], of any rows. Nothing lies over them outside the merge, and none
    /// of their cells is a counter, if `is_clear`.
    fn merge_rows_cell_by_cell(
        &mut self,
        members: &[u32],
        visits: Visits<'_>,
        active: DeletionTime,
        is_clear: bool,
    ) -> Result<()> {
        let first = &self.inputs[members[0] as usize];
        let Some(row) = first.cursor.row() else {
            return Err(Error::Internal("a row among markers".to_owned()));
        };
        const NEEDS_CARE: u8 = flags::HAS_COMPLEX_DELETION | flags::EXTENSION_FLAG;
        if members.len() == 1
            && active.is_live()
            && first.nothing_dropped
            && first.same_clustering
            && is_clear
            && row.head.flags & NEEDS_CARE == 0
        {
            let map = first.map.of_kind(false);
            match self.writer.transcode_row(&row, map, &self.purger) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(TranscodeError::Row(error)) => return Err(first.cursor.place_error(error)),
                Err(TranscodeError::Other(error)) => return Err(error),
            }
        }
        let guess = members
            .iter()
            .filter_map(|i| self.inputs[*i as usize].cursor.row())
            .map(|row| row.body_len())
            .max()
            .unwrap_or(0);
        let clustering = if let [_] = members
            && first.same_clustering
        {
            row.clustering_bytes()
        } else {
            let (inputs, output) = (&self.inputs, &self.output);
            let of = candidates(members, self.as_compaction);
            least_clustering(inputs, output, of, &mut self.prefix, &mut self.bound);
            &self.prefix
        };
        let inputs = &self.inputs;
        let writer = &mut self.writer;
        let mut is_written = Ok(());
        let versions = members.iter().filter_map(|i| {
            let input = &inputs[*i as usize];
            Some((input.cursor.row()?, input.map.of_kind(false)))
        });
        let merge = |shadow: Option<RowShadow<'_>>| {
            let context = RowContext {
                active,
                inputs: members.len(),
                visits: self.as_compaction.then_some(visits),
                purger: &self.purger,
                output: &self.output,
                drops: &self.drops,
                shadow,
            };
            let counts = &mut self.counts.purged;
            self.rows.merge(versions, &context, counts, |row| {
                is_written = writer.add_row(false, clustering, row, guess);
            })
        };
        let at = inputs[members[0] as usize].cursor.clustering();
        let merged = match (&mut self.shadow, at) {
            (Some(shadow), Some(at)) if shadow.is_here() => {
                shadow.over_row(at, |over| merge(Some(over)))?
            }
            _ => merge(None),
        };
        merged.map_err(|VersionError { number, error }| {
            inputs[members[number] as usize].cursor.place_error(error)
        })?;
        is_written
    }
}

/// Where merged simple rows go.
struct SimpleOutput<'a, B, I> {
    merger: &'a mut SimpleMerger,
    purger: &'a Purger,
    counts: &'a mut PurgeCounts,
    writer: &'a mut PartitionWriter<B, I>,
}

impl<B: BlockOutput, I: SstableIndex> SimpleOutput<'_, B, I> {
    /// [`SimpleOutput::merge`] for many versions, once in the program.
    #[inline(never)]
    fn merge_several(
        self,
        versions: &[SimpleVersion<'_>],
        clustering: &[u8],
        active: DeletionTime,
    ) -> Result<bool> {
        self.merge(versions, clustering, active)
    }

    /// Writes what `versions` come to, at this serialized clustering. Returns false, with nothing written,
    /// where [`SimpleMerger::merge`] gives nothing.
    #[inline(always)]
    fn merge(
        self,
        versions: &[SimpleVersion<'_>],
        clustering: &[u8],
        active: DeletionTime,
    ) -> Result<bool> {
        let merger = self.merger;
        let Some(row) = merger.merge(versions, active, self.purger, self.counts) else {
            return Ok(false);
        };
        if row.is_empty() {
            return Ok(true);
        }
        let guess = versions.iter().map(|v| v.row.body_len()).max();
        self.writer
            .write_simple_row(clustering, &row, merger, versions, guess.unwrap_or(0))?;
        Ok(true)
    }
}

/// The row on which this input stands, if it is a simple one of which nothing was dropped.
#[inline(always)]
fn simple_version<S: BlockSource>(
    inputs: &[MergeInput<S>],
    member: u32,
) -> Option<SimpleVersion<'_>> {
    let input = &inputs[member as usize];
    let row = input.cursor.row().filter(|_| input.nothing_dropped)?;
    Some(SimpleVersion {
        row: SimpleRow::read(row.bytes, &row.head, row.layout)?,
        layout: row.layout,
        map: input.map.of_kind(false),
    })
}

/// The clusterings of the rows on which these inputs stand are the same bytes, also in the output.
#[inline(always)]
fn same_clustering_bytes<S: BlockSource>(inputs: &[MergeInput<S>], members: &[u32]) -> bool {
    let clustering = |member: u32| {
        let input = &inputs[member as usize];
        let row = input.cursor.row().filter(|_| input.same_clustering)?;
        Some(row.clustering_bytes())
    };
    let first = clustering(members[0]);
    first.is_some() && members[1..].iter().all(|&other| clustering(other) == first)
}
