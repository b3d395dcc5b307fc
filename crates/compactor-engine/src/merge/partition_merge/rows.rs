//! Merging the versions of a static row, or of the rows at one clustering.

use compactor_sstable::data::deletion_time::DeletionTime;

use super::PartitionMerger;
use super::equal_clusterings::{candidates, least_clustering};
use crate::error::{Error, Result};
use crate::merge::merge_input::MergeInput;
use crate::merge::newest_plain::newest_plain;
use crate::merge::observer::Observer;
use crate::merge::shadow_sources::ShadowSources;
use crate::read::window::BlockSource;
use crate::row::purge_counts::PurgeCounts;
use crate::row::row_merge::{RowContext, Visits};
use crate::row::row_version::{Version, VersionError, row_bytes};
use crate::write::partition_sink::PartitionSink;

impl<S: BlockSource, O: PartitionSink> PartitionMerger<S, O> {
    /// Merges and writes the static rows of these inputs.
    pub(super) fn merge_static_row(&mut self, group: &[u32], deletion: DeletionTime) -> Result<()> {
        if !self.output.has_static() {
            return Ok(());
        }
        self.step.clear();
        self.places.clear();
        for (place, member) in (0..).zip(group) {
            let cursor = &self.inputs[*member as usize].cursor;
            if cursor.static_row().is_some() {
                self.step.push(*member);
                self.places.push(place);
            }
            // Every partition of a table with static columns has a static row: empty ones are not counted.
            self.counts.rows_read += u64::from(cursor.has_static_content());
        }
        let (step, places) = (
            std::mem::take(&mut self.step),
            std::mem::take(&mut self.places),
        );
        let visits = Visits {
            places: &places,
            sources: group.len(),
        };
        self.write_merged(true, &step, visits, deletion)?;
        self.step = step;
        self.places = places;
        Ok(())
    }

    /// Moves an input to its next row or marker.
    #[inline(always)]
    pub(super) fn next_unfiltered(
        &mut self,
        member: u32,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let input = &mut self.inputs[member as usize];
        input.cursor.next_unfiltered()?;
        if input.facts.may_have_dropped {
            self.skip_dropped_rows(member as usize, observer)?;
        }
        Ok(())
    }

    /// Moves an input past rows with nothing but data of dropped columns. Cassandra does not read such rows: they are no
    /// versions of a row, nor are their clusterings (`UnfilteredSerializer.deserialize`).
    fn skip_dropped_rows(&mut self, member: usize, observer: &mut dyn Observer) -> Result<()> {
        while let input = &mut self.inputs[member]
            && let Some(row) = input.cursor.row()
        {
            let map = input.facts.map.of_kind(false);
            let mut counts = PurgeCounts::default();
            let is_left = self
                .rows
                .is_anything_left(false, Version { row, map }, &mut counts);
            if is_left.map_err(|error| input.cursor.locate_error(error))? {
                break;
            }
            self.counts.rows_read += 1;
            self.counts.purged.of_dropped_columns += counts.of_dropped_columns;
            input.cursor.next_unfiltered()?;
            self.step(observer)?;
        }
        Ok(())
    }

    /// Merges and writes the rows of these inputs at one clustering.
    #[inline]
    pub(super) fn merge_rows(
        &mut self,
        members: &[u32],
        visits: Visits<'_>,
        active: DeletionTime,
    ) -> Result<()> {
        self.counts.rows_read += members.len() as u64;
        if self
            .shadow
            .as_ref()
            .is_none_or(ShadowSources::shadows_nothing)
            && let Some(plain) = newest_plain(&self.inputs, members)
            && (active.is_live() || active.marked_for_delete_at < plain.liveness.timestamp)
            && self.writer.copy_row(&plain, &self.purger)?
        {
            return Ok(());
        }
        self.write_merged(false, members, visits, active)
    }

    /// Merges and writes the static rows of these inputs, or their rows at one clustering.
    #[inline(always)]
    fn write_merged(
        &mut self,
        is_static: bool,
        members: &[u32],
        visits: Visits<'_>,
        active: DeletionTime,
    ) -> Result<()> {
        let (inputs, output) = (&self.inputs, &self.output);
        let versions = Versions::of(inputs, members, is_static);
        let versions = versions.as_slice();
        let clustering = match same_clustering(inputs, members, versions) {
            _ if is_static => &[],
            Some(clustering) => clustering,
            None => {
                let of = candidates(members, self.in_cassandra_order);
                least_clustering(inputs, output, of, &mut self.prefix, &mut self.bound);
                &self.prefix[..]
            }
        };
        let guess = versions.iter().map(|version| version.row.body_len());
        let guess = guess.max().unwrap_or(0);
        let shadow = match &mut self.shadow {
            Some(shadow) if shadow.is_here() => match versions {
                [] => None,
                _ if is_static => Some(shadow.static_row_shadow()?),
                _ => {
                    let at = inputs[members[0] as usize].cursor.clustering();
                    at.map(|at| shadow.row_shadow(at)).transpose()?
                }
            },
            _ => None,
        };
        let context = RowContext {
            is_static,
            active,
            inputs: if is_static {
                visits.sources
            } else {
                members.len()
            },
            visits: self.in_cassandra_order.then_some(visits),
            purger: &self.purger,
            shadow,
        };
        let row = self.rows.merge(versions, &context, &mut self.counts.purged);
        let row = row.map_err(|error| locate_error(inputs, members, error))?;
        if !row.is_empty() {
            let row_of = |version| row_bytes(versions, version);
            return self
                .writer
                .add_row(is_static, clustering, row, row_of, guess);
        }
        if is_static {
            self.writer.add_empty_static_row();
        }
        Ok(())
    }
}

/// Versions of a row, usually few.
enum Versions<'a> {
    One([Version<'a>; 1]),
    Few([Version<'a>; FEW], usize),
    Many(Vec<Version<'a>>),
}

/// Maximum number of versions in an array on the stack, all of whose elements are initialized.
const FEW: usize = 4;

impl<'a> Versions<'a> {
    /// Current rows of these inputs.
    #[inline(always)]
    fn of<S: BlockSource>(
        inputs: &'a [MergeInput<S>],
        members: &[u32],
        is_static: bool,
    ) -> Versions<'a> {
        let version = |member: u32| {
            let input = &inputs[member as usize];
            let row = if is_static {
                input.cursor.static_row()?
            } else {
                input.cursor.row()?
            };
            let map = input.facts.map.of_kind(is_static);
            Some(Version { row, map })
        };
        match *members {
            [only] => match version(only) {
                Some(version) => Versions::One([version]),
                None => Versions::Many(Vec::new()),
            },
            [first, ..] if members.len() <= FEW => match version(first) {
                Some(first) => {
                    let mut few = [first; FEW];
                    for (place, member) in few.iter_mut().zip(members).skip(1) {
                        *place = version(*member).unwrap_or(first);
                    }
                    Versions::Few(few, members.len())
                }
                None => Versions::Many(Vec::new()),
            },
            _ => Versions::Many(members.iter().filter_map(|m| version(*m)).collect()),
        }
    }

    #[inline(always)]
    fn as_slice(&self) -> &[Version<'a>] {
        match self {
            Versions::One(one) => one,
            Versions::Few(few, len) => &few[..*len],
            Versions::Many(many) => many,
        }
    }
}

#[cold]
fn locate_error<S: BlockSource>(
    inputs: &[MergeInput<S>],
    members: &[u32],
    VersionError { number, error }: VersionError,
) -> Error {
    match members.get(number) {
        Some(member) => inputs[*member as usize].cursor.locate_error(error),
        None => Error::Format(error),
    }
}

/// Clustering of these rows, if its bytes are the same in all of them and in the output.
#[inline(always)]
fn same_clustering<'a, S: BlockSource>(
    inputs: &[MergeInput<S>],
    members: &[u32],
    versions: &[Version<'a>],
) -> Option<&'a [u8]> {
    let clustering = versions.first()?.row.clustering_bytes();
    let is_same = |(member, version): (&u32, &Version<'_>)| {
        inputs[*member as usize].same_clustering && version.row.clustering_bytes() == clustering
    };
    members
        .iter()
        .zip(versions)
        .all(is_same)
        .then_some(clustering)
}
