//! More inputs than memory or descriptors allow are merged in passes: some of them first, the smallest,
//! into an intermediate SSTable that nobody sees, until few enough are left.
//!
//! What one pass would have done is done at the end, and only there: an intermediate SSTable holds what
//! its inputs hold. Nothing in it is purged, no cell counts as expired (of two cells of one timestamp the
//! later to expire wins, and a tombstone before both), and its version holds whatever its inputs may. What
//! was dropped with its column goes at once, as it goes before anything is reconciled in one pass.
//! Reconciliation asks for the greatest or least of several versions, so that it does not matter in which
//! order they meet. The header, id, key estimate and inherited statistics of the output are decided from
//! the inputs of the whole, before the first pass.
//!
//! Of equal clusterings and paths that differ in their bytes the least are kept, in each pass, so that neither
//! the number of passes nor what is merged first decides. In one pass they are those that Cassandra keeps,
//! which depends on where each input stood before: an intermediate SSTable does not tell that.
//!
//! Two things do depend on the order, as they do when Cassandra compacts in several steps. Counters are
//! added up, and what comes of it has the greatest timestamp: a deletion between two versions that an
//! earlier pass has added up comes too late for the older one. And a row deletion of a view that newer
//! liveness lifts has by then taken what it met in an earlier pass.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use compactor_io::give_back_free_memory;
use compactor_sstable::Version;
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::info::CompressionParams;

use crate::error::Result;
use crate::input::sstable::InputSstable;
use crate::job::budget::INTERMEDIATE_CHUNK_LEN;
use crate::job::earlier_passes::{EarlierPasses, Intermediate, Progress};
use crate::job::merge_job::MergeJob;
use crate::job::options::{MergeOptions, OutputCompression, Scope};
use crate::job::overlapping::OverlappingSet;
use crate::job::pass::Pass;
use crate::job::staged_merge::StagedMerge;
use crate::job::tombstone_option::TombstoneOption;
use crate::merge::observer::{InputRead, Observer};
use crate::publish::staging::Staging;

impl MergeJob {
    /// Merges some inputs of a whole into an intermediate SSTable. Returns also what was read.
    ///
    /// # Errors
    /// As [`MergeJob::stage`].
    fn stage_intermediate(
        self,
        earlier: &EarlierPasses,
        observer: &mut dyn Observer,
    ) -> Result<(StagedMerge, Vec<InputRead>)> {
        let whole = self.whole();
        let mut observer = earlier.observer(observer);
        let pass = Pass {
            earlier,
            is_last: false,
            whole,
        };
        let (staged, mut reads) = self.run_pass(&mut observer, &pass)?;
        earlier.retain_inputs(&mut reads);
        Ok((staged, reads))
    }

    /// Whether there are more inputs than can be read at a time.
    pub fn is_in_passes(&self) -> bool {
        self.inputs.len() > self.max_concurrent
    }

    /// Merges the smallest inputs until so few are left that they can be merged in one pass.
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
                whole: lens.iter().sum(),
            },
            ..EarlierPasses::default()
        };
        if self.is_in_passes() {
            earlier.work = Some(Staging::create(&self.claim()?)?);
            for input in &mut self.inputs {
                // How many keys there are is decided, and intermediate SSTables have no filter.
                input.statistics.compaction = None;
            }
            // Of what it took to open them all.
            give_back_free_memory();
        }
        while self.inputs.len() > max_concurrent {
            let count = number_to_merge(self.inputs.len(), max_concurrent);
            let (place, some) = self.take_smallest(count);
            let intermediate = self.merge_some(some, &mut earlier, observer)?;
            give_back_free_memory();
            if let Some(intermediate) = intermediate {
                let place = place.min(self.inputs.len());
                self.inputs.insert(place, intermediate);
            }
        }
        earlier.rows = earlier.intermediates.values().map(|i| i.rows).sum();
        self.divide_memory();
        Ok(earlier)
    }

    /// Takes the smallest inputs out, in their order; also where the first of them was.
    fn take_smallest(&mut self, count: usize) -> (usize, Vec<InputSstable>) {
        let mut by_len: Vec<usize> = (0..self.inputs.len()).collect();
        by_len.sort_by_key(|&place| self.inputs[place].data_len());
        let mut is_taken = vec![false; self.inputs.len()];
        for place in by_len.into_iter().take(count) {
            is_taken[place] = true;
        }
        let place = is_taken.iter().position(|taken| *taken).unwrap_or(0);
        let mut taken = is_taken.into_iter();
        // What stays is not moved elsewhere: there may be thousands.
        let some = self
            .inputs
            .extract_if(.., |_| taken.next().unwrap_or(false));
        (place, some.collect())
    }

    fn merge_some(
        &self,
        inputs: Vec<InputSstable>,
        earlier: &mut EarlierPasses,
        observer: &mut dyn Observer,
    ) -> Result<Option<InputSstable>> {
        let paths: Vec<PathBuf> = inputs.iter().map(InputSstable::data_path).collect();
        let len: u64 = inputs.iter().map(InputSstable::data_len).sum();
        let job = MergeJob::decide(
            self.io.clone(),
            self.intermediate_options(self.intermediate_version(&inputs), earlier),
            inputs,
            // By all inputs: those that wait are open, too.
            self.taken,
            &[],
        )?;
        let (staged, reads) = job.stage_intermediate(earlier, observer)?;
        earlier.progress.read += len;
        earlier.reads.extend(reads);
        earlier.counts.add(staged.counts());
        earlier.serial = staged.serial();
        let mut passes = 1;
        for path in &paths {
            // What it was made of is removed with it.
            if let Some(consumed) = earlier.intermediates.remove(path) {
                passes = passes.max(consumed.passes + 1);
                earlier.counts.rows_read -= consumed.rows;
            }
        }
        earlier.passes = earlier.passes.max(passes + 1);
        // Everything in them may have been dropped with its column.
        let Some((data_path, rows)) = staged.output() else {
            return Ok(None);
        };
        let opened = InputSstable::open(&self.io, &data_path, self.options.read_mode)?;
        let intermediate = Intermediate {
            _staged: staged,
            rows,
            passes,
        };
        earlier.intermediates.insert(data_path, intermediate);
        Ok(Some(opened))
    }

    /// Since `oa` there are times beyond 2038 and no deletions of partitions at negative timestamps,
    /// before it the other way round: of inputs of both kinds what the output can hold is what counts.
    fn intermediate_version(&self, inputs: &[InputSstable]) -> Version {
        let is_later = |version: Version| version.has_uint_deletion_time();
        let any_later = inputs.iter().any(|i| is_later(i.descriptor.version));
        match is_later(self.settings.descriptor.version) && any_later {
            true => Version::Pa,
            false => Version::Nb,
        }
    }

    fn intermediate_options(&self, version: Version, earlier: &EarlierPasses) -> MergeOptions {
        let output = &self.options.output_directory;
        let work = earlier.work.as_ref().map_or(&**output, Staging::directory);
        MergeOptions {
            output_directory: work.to_owned(),
            scope: Scope::Unknown,
            overlapping: OverlappingSet::default(),
            now_s: i64::MIN,
            gc_before_s: None,
            only_purge_repaired: false,
            overlapping_tombstones: TombstoneOption::None,
            version: Some(version),
            id: Some(self.settings.descriptor.id),
            format: None,
            max_sstable_size: None,
            outputs: NonZeroUsize::MIN,
            compression: OutputCompression::Params(CompressionParams::new(
                Codec::Lz4,
                INTERMEDIATE_CHUNK_LEN,
            )),
            bloom_filter_fp_chance: Some(1.0),
            ..self.options.clone()
        }
    }
}

/// So many that afterwards just enough are left; all that can be merged if that is not enough.
fn number_to_merge(inputs: usize, max_concurrent: usize) -> usize {
    (inputs - max_concurrent + 1).min(max_concurrent)
}

/// Bytes that all passes read, if nothing becomes smaller.
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
    fn no_more_is_merged_beforehand_than_has_to_be() {
        // Two of six are one, and five can be merged.
        assert_eq!(number_to_merge(6, 5), 2);
        assert_eq!(planned_bytes(&[9, 9, 1, 9, 2, 9], 5), 39 + 3);
        assert_eq!(planned_bytes(&[1, 2], 2), 3);
        // 9 by 3: three become one, three more, three more, and these are three.
        assert_eq!(number_to_merge(9, 3), 3);
        assert_eq!(planned_bytes(&[1; 9], 3), 18);
    }
}
