//! Inputs of a merge whose components are checked, and the threads that do so.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use compactor_engine::input::{InputSstable, SharedTries, SidecarFacts};
use compactor_engine::job::{MergeJob, OverlappingSstable};
use compactor_engine::read::parallel_map;
use compactor_engine::{Error, ErrorKind, Result};
use compactor_io::{Io, ReadMode};
use compactor_sstable::{Component, Format};

use crate::verify::Finding;
use crate::verify::bti_sidecar_components::{self, Opening, TrieBatches, TrieInput};
use crate::verify::indexed_partitions::{IndexReader, IndexedInput};
use crate::verify::sidecar_components;
use crate::verify::statistics_consistency::{self, StatisticsConsistency};

/// Inputs of a job whose components are checked.
pub(super) struct InputsToCheck {
    /// Inputs of the BIG format, whose components are checked without the data.
    inputs: Vec<InputToCheck>,
    /// Of these, the ones that are read and whose partitions may have a promoted index.
    pub(super) indexed: Vec<IndexedInput>,
    /// Inputs of the BTI format: those of the merge, each with its totals, and then those that are not merged.
    pub(super) tries: Vec<TrieInput>,
    trie_totals: Vec<StatisticsConsistency>,
    unread_tries: Vec<Arc<OverlappingSstable>>,
    opening: Opening,
    mode: ReadMode,
}

enum InputToCheck {
    OfMerge {
        data_path: PathBuf,
        data_len: u64,
        totals: StatisticsConsistency,
        /// The same SSTable in its role as an overlapping one: another merge may have checked it already.
        outside: Option<Arc<OverlappingSstable>>,
    },
    /// It is not merged, and other merges may have checked it. There may be many thousands.
    Outside(Arc<OverlappingSstable>),
}

impl InputToCheck {
    fn data_len(&self) -> u64 {
        match self {
            InputToCheck::OfMerge { data_len, .. } => *data_len,
            InputToCheck::Outside(sstable) => sstable.data_len,
        }
    }
}

/// An input whose sidecar components were checked.
pub(super) struct CheckedInput {
    pub(super) data_path: PathBuf,
    pub(super) totals: StatisticsConsistency,
    pub(super) sidecars: SidecarFacts,
}

/// Inputs that a thread has checked, and the damage that does not stop the merge.
pub(super) type Checked = Result<(Vec<CheckedInput>, Vec<Finding>)>;

/// The same for one input; `None` where nothing was checked.
type CheckedOne = Result<Option<(CheckedInput, Vec<Finding>)>>;

/// Joins the checks of several inputs. One that fails stops the others, which then end as cancelled: the error is that
/// of the one that failed.
fn joined(results: Vec<CheckedOne>) -> Checked {
    let (mut checked, mut ignored, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(Some((input, of_input))) => {
                checked.push(input);
                ignored.extend(of_input);
            }
            Ok(None) => {}
            Err(error) => errors.push(error),
        }
    }
    let cause = errors.into_iter().min_by_key(is_cancelled);
    cause.map_or(Ok((checked, ignored)), Err)
}

/// Number of small inputs whose components are checked concurrently.
const CHECKED_AT_ONCE: usize = 4;

/// Uncompressed bytes up to which the check of an input mostly waits for reads.
const SMALL_INPUT_BYTES: u64 = 4 << 20;

impl InputsToCheck {
    pub(super) fn of(job: &MergeJob) -> Result<InputsToCheck> {
        // Inputs are dropped unread because of their statistics and of the index that has their key range: these are
        // validated like those of the others.
        let read = job.inputs().iter().map(|input| (input, true));
        let unread = job.fully_expired().iter().map(|input| (input, false));
        let (big, bti): (Vec<_>, Vec<_>) = read
            .chain(unread)
            .partition(|(input, _)| input.descriptor.version.format() == Format::Big);
        let outside = &job.options().overlapping;
        let inputs = big.iter().map(|(input, _)| InputToCheck::OfMerge {
            data_path: input.data_path(),
            data_len: input.data_len(),
            totals: totals_of(input),
            outside: outside.get(&input.data_path()),
        });
        let tries = bti.iter().map(|(input, is_read)| TrieInput {
            data_path: input.data_path(),
            data_len: input.data_len(),
            is_read: *is_read,
            tries: input.tries.clone(),
        });
        // All of these files are open at a time, and there may be too many of them.
        let may_follow = !job.is_in_passes();
        let indexed = big
            .iter()
            .filter(|(input, is_read)| *is_read && input.may_have_promoted_indexes() && may_follow);
        let indexed = indexed.map(|(input, _)| {
            Ok(IndexedInput {
                data_path: input.data_path(),
                data_len: input.data_len(),
                layout: Arc::new(input.layout()?),
                partitioner: input.partitioner,
            })
        });
        let mut to_check = InputsToCheck {
            inputs: inputs.collect(),
            indexed: indexed.collect::<Result<_>>()?,
            tries: tries.collect(),
            trie_totals: bti.iter().map(|(input, _)| totals_of(input)).collect(),
            unread_tries: Vec::new(),
            opening: if job.is_in_passes() {
                Opening::WithFirstPartition
            } else {
                Opening::AtOnce
            },
            mode: job.options().read_mode,
        };
        // Overlapping SSTables are trusted, too: a filter or key range that hides a key lets tombstones be purged
        // that still shadow it.
        for sstable in job.overlapping() {
            to_check.add_unread(sstable);
        }
        Ok(to_check)
    }

    fn add_unread(&mut self, sstable: &Arc<OverlappingSstable>) {
        if sstable.checked().is_some() {
            return;
        }
        match sstable.descriptor.version.format() {
            Format::Big => self.inputs.push(InputToCheck::Outside(Arc::clone(sstable))),
            Format::Bti => {
                self.unread_tries.push(Arc::clone(sstable));
                self.tries.push(TrieInput {
                    data_path: sstable.descriptor.path(Component::Data),
                    data_len: sstable.data_len,
                    is_read: false,
                    tries: SharedTries::default(),
                });
            }
        }
    }

    /// Checks BIG inputs one after the other, which leaves processors and disk to the merge; small ones several at a
    /// time, since their check mostly waits for reads.
    pub(super) fn check(&self, io: &Io, stop: &AtomicBool, failed: &AtomicBool) -> Checked {
        let are_small = (self.inputs.iter()).all(|input| input.data_len() <= SMALL_INPUT_BYTES);
        let at_once = if are_small { CHECKED_AT_ONCE } else { 1 };
        let results = parallel_map(&self.inputs, at_once, |input| {
            if failed.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let check = |path: &Path| {
                sidecar_components::check(io, path, input.data_len(), self.mode, stop)
            };
            let checked = match input {
                InputToCheck::OfMerge {
                    data_path,
                    totals,
                    outside,
                    ..
                } => {
                    let known = outside.as_ref().and_then(|outside| outside.checked());
                    let checked = match known {
                        Some(sidecars) => Ok((sidecars, Vec::new())),
                        None => check(data_path),
                    };
                    checked.map(|(sidecars, ignored)| {
                        if let (Some(outside), true) = (outside, ignored.is_empty()) {
                            outside.set_checked(sidecars);
                        }
                        let checked = CheckedInput {
                            data_path: data_path.clone(),
                            totals: *totals,
                            sidecars,
                        };
                        Some((checked, ignored))
                    })
                }
                InputToCheck::Outside(sstable) => sstable
                    .check_once(|| {
                        let (sidecars, ignored) = check(&sstable.descriptor.path(Component::Data))?;
                        sidecar_components::refuse_any(ignored)?;
                        Ok(sidecars)
                    })
                    .map(|()| None),
            };
            if checked.is_err() && !stop.load(Ordering::Relaxed) {
                failed.store(true, Ordering::Relaxed);
            }
            checked
        });
        joined(results)
    }

    /// Checks BTI inputs concurrently with the merge.
    pub(super) fn follow(
        &self,
        io: &Io,
        batches: &TrieBatches,
        stop: &AtomicBool,
        failed: &AtomicBool,
    ) -> Checked {
        let opening = self.opening;
        let checked =
            bti_sidecar_components::check(io, &self.tries, batches, self.mode, opening, stop);
        let sidecars = checked.inspect_err(|error| followed_to(error, failed))?;
        let (mut checked, mut ignored) = (Vec::new(), Vec::new());
        let mut sidecars = sidecars.into_iter();
        let inputs = self.tries.iter().zip(&self.trie_totals);
        for ((input, totals), (sidecars, of_input)) in inputs.zip(&mut sidecars) {
            ignored.extend(of_input);
            checked.push(CheckedInput {
                data_path: input.data_path.clone(),
                totals: *totals,
                sidecars,
            });
        }
        for (unread, (sidecars, of_unread)) in self.unread_tries.iter().zip(sidecars) {
            sidecar_components::refuse_any(of_unread)
                .inspect_err(|error| followed_to(error, failed))?;
            unread.set_checked(sidecars);
        }
        Ok((checked, ignored))
    }

    /// Checks the promoted indexes of BIG inputs concurrently with the merge.
    pub(super) fn read_indexes(
        &self,
        io: &Io,
        reader: IndexReader,
        stop: &AtomicBool,
        failed: &AtomicBool,
    ) -> Checked {
        let ignored = reader
            .run(io, &self.indexed, self.mode, stop)
            .inspect_err(|error| followed_to(error, failed))?;
        Ok((Vec::new(), ignored))
    }
}

fn totals_of(input: &InputSstable) -> StatisticsConsistency {
    let (version, stats) = (input.descriptor.version, &input.statistics.stats);
    let ratio = statistics_consistency::ratio_of(input.compression_info());
    StatisticsConsistency::of(version, stats, ratio)
}

/// Records that the check failed, unless only because the merge ended early.
fn followed_to(error: &Error, failed: &AtomicBool) {
    if !is_cancelled(error) {
        failed.store(true, Ordering::Relaxed);
    }
}

/// Whether the error is only a consequence of a stopped merge.
pub(super) fn is_cancelled(error: &Error) -> bool {
    error.kind() == ErrorKind::Cancelled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_that_of_the_input_that_failed() {
        let error = |kind| match kind {
            ErrorKind::Cancelled => Err(Error::Cancelled),
            _ => Err(Error::Refused("damaged".to_owned())),
        };
        let kind = |kinds: &[ErrorKind]| {
            let results = kinds.iter().map(|kind| error(*kind)).chain([Ok(None)]);
            joined(results.collect()).err().map(|error| error.kind())
        };
        let (stopped, failed) = (ErrorKind::Cancelled, ErrorKind::Refused);
        assert_eq!(kind(&[]), None);
        assert_eq!(kind(&[stopped, stopped]), Some(stopped));
        assert_eq!(kind(&[stopped, failed, stopped]), Some(failed));
    }
}
