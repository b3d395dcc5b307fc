//! Versions of a row, of one clustering or static, that become one: copied, put together of plain ones,
//! transcoded, or reconciled cell by cell.

use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::flags;
use compactor_sstable::data::plain_cells::PlainCells;

use super::PartitionMerger;
use crate::error::{Error, Result};
use crate::newest_row::{MOST_VERSIONS, newest_plain, plain_versions};
use crate::partition_writer::{BlockOutput, TranscodeError};
use crate::row_merge::{RowContext, VersionError};
use crate::row_shadow::RowShadow;
use crate::shadow_sources::ShadowSources;
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
            let merge = |shadow: Option<RowShadow<'_>>| {
                let context = RowContext {
                    active: deletion,
                    inputs: group.len(),
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
    pub(super) fn merge_rows(&mut self, members: &[u32], active: DeletionTime) -> Result<()> {
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
            let mut versions = [PlainCells::default(); MOST_VERSIONS];
            if members.len() > 1
                && let Some((newest, count)) =
                    plain_versions(&self.inputs, members, active, &mut versions)
            {
                let versions = &mut versions[..count];
                return self.writer.write_newest_cells(&newest, versions);
            }
        }
        self.merge_rows_cell_by_cell(members, active, is_clear)
    }

    /// As [`PartitionMerger::merge_rows`], of any rows. Nothing lies over them outside the merge, and none
    /// of their cells is a counter, if `is_clear`.
    fn merge_rows_cell_by_cell(
        &mut self,
        members: &[u32],
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
            self.least_clustering(members);
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
