//! Merging in passes, if there are more inputs than memory or descriptors allow: the smallest are merged
//! first, into intermediate SSTables, until few enough are left.
//!
//! The result is that of a single pass. An intermediate SSTable contains all that its inputs contain: nothing
//! is purged, no cell counts as expired (of two cells with equal timestamps the one that expires later wins,
//! and a tombstone wins over both), and its version can represent all data of its inputs (where none can, because one
//! of them has a partition deletion before 1970 and another a time after 2038, the merge is refused). Data of dropped
//! columns, and TTLs that are to be removed, are removed in every pass, since a single pass removes them
//! before reconciliation. A partition that had nothing else stays, empty: whether one input has a partition or several
//! decides how it is merged. Reconciliation takes the maximum or minimum of several versions, so that the order
//! in which they are merged does not matter. Header, id, key estimate, inherited statistics and
//! boundaries of the outputs are decided from the original inputs, before the first pass.
//!
//! Of clusterings of rows and of paths that compare equal but differ in their bytes, each pass keeps the least, so that
//! neither the number of passes nor their order matters. A single pass keeps those that Cassandra keeps,
//! which depends on earlier positions of each input; an intermediate SSTable does not have this information.
//!
//! Two results depend on the order, as they do when Cassandra compacts in several steps. Counters are added
//! up, and the sum has the greatest timestamp: a deletion between two versions that an earlier pass has added
//! up does not delete the older one. And a row deletion of a view that a newer liveness removes has already
//! removed the data that it met in an earlier pass.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use compactor_io::release_free_memory;
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::info::CompressionParams;
use compactor_sstable::{Error as FormatError, Version};

use crate::error::{Error, ErrorKind, Result};
use crate::input::sstable::InputSstable;
use crate::job::budget::INTERMEDIATE_CHUNK_LEN;
use crate::job::earlier_passes::{EarlierPasses, Progress};
use crate::job::merge_job::{MergeJob, Opened};
use crate::job::options::{MergeOptions, OutputCompression};
use crate::job::pass::Pass;
use crate::job::staged_merge::StagedMerge;
use crate::merge::observer::{InputRead, Observer};
use crate::publish::output_id::OutputIds;
use crate::publish::staging::Staging;

impl MergeJob {
    /// Whether there are more inputs than can be read at a time.
    pub fn is_in_passes(&self) -> bool {
        self.inputs.len() > self.max_concurrent
    }

    /// Merges the smallest inputs until few enough are left for a single pass.
    ///
    /// # Errors
    /// As [`MergeJob::run`].
    pub(crate) fn earlier_passes(&mut self, observer: &mut dyn Observer) -> Result<EarlierPasses> {
        let max_concurrent = self.max_concurrent;
        let lens: Vec<u64> = self.inputs.iter().map(InputSstable::data_len).collect();
        let mut earlier = EarlierPasses {
            passes: 1,
            progress: Progress {
                read: 0,
                planned: planned_bytes(&lens, max_concurrent),
                total: lens.iter().sum(),
            },
            ..EarlierPasses::default()
        };
        if self.is_in_passes() {
            self.outputs = Some(self.output_plan()?);
            earlier.work = Some(Staging::create(&self.claim()?)?);
            for input in &mut self.inputs {
                // The key estimate has been decided, and intermediate SSTables have no filter.
                input.statistics.compaction = None;
            }
            // Memory that was needed only to open them.
            release_free_memory();
        }
        while self.inputs.len() > max_concurrent {
            let count = number_to_merge(self.inputs.len(), max_concurrent);
            let (place, some) = self.take_smallest(count);
            let intermediate = self.merge_some(some, &mut earlier, observer)?;
            release_free_memory();
            let place = place.min(self.inputs.len());
            self.inputs.insert(place, intermediate);
        }
        self.divide_memory();
        Ok(earlier)
    }

    /// Removes the smallest inputs, preserving their order; also returns the index of the first of them.
    fn take_smallest(&mut self, count: usize) -> (usize, Vec<InputSstable>) {
        let mut by_len: Vec<usize> = (0..self.inputs.len()).collect();
        by_len.sort_by_key(|&place| self.inputs[place].data_len());
        let mut is_taken = vec![false; self.inputs.len()];
        for place in by_len.into_iter().take(count) {
            is_taken[place] = true;
        }
        let place = is_taken.iter().position(|taken| *taken).unwrap_or(0);
        let mut taken = is_taken.into_iter();
        // The other inputs are not moved: there may be thousands.
        let some = self
            .inputs
            .extract_if(.., |_| taken.next().unwrap_or(false));
        let some = some.collect();
        // The list of ten thousand takes 8 MiB.
        self.inputs.shrink_to_fit();
        (place, some)
    }

    /// Merges some of the inputs into an intermediate SSTable.
    ///
    /// # Errors
    /// As [`MergeJob::stage`].
    fn merge_some(
        &self,
        inputs: Vec<InputSstable>,
        earlier: &mut EarlierPasses,
        observer: &mut dyn Observer,
    ) -> Result<InputSstable> {
        let paths: Vec<PathBuf> = inputs.iter().map(InputSstable::data_path).collect();
        let len: u64 = inputs.iter().map(InputSstable::data_len).sum();
        let is_later = |input: &InputSstable| input.descriptor.version.has_uint_deletion_time();
        let later = inputs.iter().filter(|input| is_later(input)).count();
        let (has_later, has_earlier) = (later > 0, later < inputs.len());
        let version = if has_later { Version::Pa } else { Version::Nb };
        let mut merged = self.merge_into(version, inputs, earlier, observer);
        if let Err(error) = &merged
            && has_later
            && has_earlier
            && is_of_version(error)
        {
            let inputs = paths.iter().map(|path| self.reopen(path));
            let inputs = inputs.collect::<Result<_>>()?;
            merged = self.merge_into(Version::Nb, inputs, earlier, observer);
        }
        let (mut staged, mut reads) = merged.map_err(in_a_pass)?;
        earlier.retain_inputs(&mut reads);
        earlier.progress.read += len;
        earlier.reads.extend(reads);
        earlier.counts.add(&staged.outcome.counts);
        earlier.serial = staged.outcome.serial;
        let mut passes = 1;
        for path in &paths {
            if let Some(consumed) = earlier.intermediates.remove(path) {
                passes = passes.max(consumed.outcome.passes + 1);
                earlier.counts.rows_read -= consumed.rows();
            }
        }
        earlier.passes = earlier.passes.max(passes + 1);
        staged.outcome.passes = passes;
        let data_path = staged.data_paths().next();
        let data_path = data_path.ok_or_else(|| Error::internal("a pass over no partitions"))?;
        let opened = self.reopen(&data_path)?;
        earlier.intermediates.insert(data_path, staged);
        Ok(opened)
    }

    /// Merges inputs into an intermediate SSTable of this version. Versions since `oa` have times after 2038 but no
    /// partition deletions with negative timestamps, earlier ones the reverse.
    fn merge_into(
        &self,
        version: Version,
        inputs: Vec<InputSstable>,
        earlier: &EarlierPasses,
        observer: &mut dyn Observer,
    ) -> Result<(StagedMerge, Vec<InputRead>)> {
        let job = MergeJob::decide(
            self.io.clone(),
            self.intermediate_options(version, earlier),
            inputs,
            &Opened {
                // Memory of all inputs: those that wait for a later pass are open, too.
                taken: self.taken,
                ..Opened::default()
            },
        )?;
        let pass = Pass {
            earlier,
            is_last: false,
            started: Instant::now(),
        };
        let output = job.output_settings();
        job.run_pass(observer, &pass, output)
    }

    fn reopen(&self, data_path: &Path) -> Result<InputSstable> {
        InputSstable::open(&self.io, data_path, self.options.read_mode)
    }

    /// Options of a pass that only reconciles: defaults purge nothing, and what the merge may drop is left to its last
    /// pass.
    fn intermediate_options(&self, version: Version, earlier: &EarlierPasses) -> MergeOptions {
        let merge = self.options.clone();
        let work = earlier.work.as_ref();
        let directory = work.map_or(&*merge.output_directory, Staging::directory);
        MergeOptions {
            claim: work.map(Staging::as_output_directory),
            existing_output: merge.existing_output,
            inputs_at_open: merge.inputs_at_open,
            // Nothing has expired.
            now_s: i64::MIN,
            strip_ttl: merge.strip_ttl,
            table: merge.table,
            version: Some(version),
            ids: Some(OutputIds::starting_at(self.settings.descriptor.id)),
            compression: OutputCompression::Params(CompressionParams::new(
                Codec::Lz4,
                INTERMEDIATE_CHUNK_LEN,
            )),
            bloom_filter_fp_chance: Some(1.0),
            min_index_interval: merge.min_index_interval,
            column_index_size: merge.column_index_size,
            read_mode: merge.read_mode,
            write_mode: merge.write_mode,
            threads: merge.threads,
            memory_bytes: merge.memory_bytes,
            open_files: merge.open_files,
            readahead_bytes: merge.readahead_bytes,
            rate_limiter: merge.rate_limiter,
            range_bytes: merge.range_bytes,
            ..MergeOptions::new(Vec::new(), directory)
        }
    }
}

/// Whether the version of an output may be the cause: it cannot represent the data.
fn is_of_version(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Refused | ErrorKind::Unsupported)
}

/// The user knows nothing of the version of an intermediate SSTable.
fn in_a_pass(error: Error) -> Error {
    let remedy = |what: String| {
        format!(
            "{what}; this is an intermediate SSTable of a merge in passes: more memory and open files make \
             a single pass possible"
        )
    };
    match error {
        Error::Refused(what) => Error::Refused(remedy(what)),
        Error::Format(FormatError::Unsupported(unsupported)) => {
            FormatError::unsupported(remedy(unsupported.what)).into()
        }
        other => other,
    }
}

/// Number of inputs to merge so that just enough are left afterwards; the maximum if that is not enough.
fn number_to_merge(inputs: usize, max_concurrent: usize) -> usize {
    (inputs - max_concurrent + 1).min(max_concurrent)
}

/// Bytes that all passes read, if no intermediate SSTable is smaller than its inputs.
fn planned_bytes(lens: &[u64], max_concurrent: usize) -> u64 {
    let mut left: BinaryHeap<Reverse<u64>> = lens.iter().copied().map(Reverse).collect();
    let mut planned: u64 = lens.iter().sum();
    while left.len() > max_concurrent {
        let count = number_to_merge(left.len(), max_concurrent);
        let merged = (0..count)
            .filter_map(|_| left.pop())
            .map(|Reverse(len)| len)
            .sum();
        planned += merged;
        left.push(Reverse(merged));
    }
    planned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_passes_merge_as_little_as_possible() {
        // Two of six become one, and five can be merged.
        assert_eq!(number_to_merge(6, 5), 2);
        assert_eq!(planned_bytes(&[9, 9, 1, 9, 2, 9], 5), 39 + 3);
        assert_eq!(planned_bytes(&[1, 2], 2), 3);
        // Nine inputs, three at a time: three merges of three each, and the results are merged.
        assert_eq!(number_to_merge(9, 3), 3);
        assert_eq!(planned_bytes(&[1; 9], 3), 18);
    }
}
