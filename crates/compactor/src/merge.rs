//! Merges SSTables into one and reports what was read, written and purged.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::Duration;

use compactor_engine::input::{InputSstable, SharedTries};
use compactor_engine::job::{self, MergeJob, MergeOptions, OverlappingSstable, StagedMerge};
use compactor_engine::merge::{InputRead, Observer};
use compactor_engine::publish::InputsAtOpen;
use compactor_engine::read::{DataTrace, parallel_map};
use compactor_engine::{Error as EngineError, Result as EngineResult};
use compactor_io::{Io, IoOptions, ReadMode};
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::statistics::stats::NO_COMPRESSION_RATIO;
use compactor_sstable::{Component, Error as FormatError, Format};

use crate::error::{Error, ErrorKind, Result};
use crate::process::Usage;
use crate::report::MergeReport;
use crate::run_record::Recorder;
use crate::verify::bti_sidecar_components::{self, TrieBatches, TrieFeed, TrieInput};
use crate::verify::indexed_partitions::{self, IndexReader, IndexedFeed, IndexedInput};
use crate::verify::sidecar_components::{self, Sidecars};
use crate::verify::statistics_consistency::{self, RowsSeen};
use crate::verify::{Finding, Severity};

/// Options of a merge; see [`MergeOptions`] for the fields.
pub type MergeRequest = MergeOptions;

/// Checks of the inputs during a merge, beyond the components that are read in any case: every chunk, row and order
/// of `Data.db`, `Statistics.db`, `CompressionInfo.db` or `CRC.db`, and `TOC.txt`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputCheck {
    /// `Index.db`, `Summary.db`, `Filter.db` and `Digest.crc32` too, beside the merge, and whether
    /// `Statistics.db` is that of the data. What is damage here is damage to
    /// [`verify`](crate::verify::verify) and the other way round, but for what only that one reads:
    /// values, which may not be of their type. The SSTables that are named as overlapping are checked as those that are
    /// dropped unread: all but their `Data.db`. Blocks of promoted indexes are held against the rows only
    /// where one pass is enough for all inputs ([`MergeJob::is_in_passes`]).
    #[default]
    AllComponents,
    /// Nothing beyond. Believed are then the components of SSTables that are not read: of those that are
    /// named as overlapping, and the `Summary.db` or `Index.db` that says where an input lies in which all
    /// has expired.
    DataOnly,
}

/// Observer that ignores all events and never stops a merge.
#[derive(Clone, Copy, Debug)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {}
}

/// Merges SSTables with the default I/O options, checking every component of them.
///
/// # Errors
/// Damaged or unsupported inputs, a failed read or write, cancellation. Nothing is written then.
pub fn merge(request: MergeRequest, observer: &mut dyn Observer) -> Result<MergeReport> {
    let job = open_merge(IoOptions::default(), request)?;
    run_merge(job, InputCheck::AllComponents, observer)
}

/// Opens the inputs and decides everything that does not need their data.
///
/// # Errors
/// Damaged or unsupported inputs, or ones that must not be merged with one another.
pub fn open_merge(io: IoOptions, request: MergeRequest) -> Result<MergeJob> {
    let io = Io::new(io)?;
    Ok(MergeJob::open(io, request)?)
}

/// As [`open_merge`], but inputs of several repair states are allowed: a job for each, to be run with
/// [`run_merges_together`].
///
/// # Errors
/// As [`open_merge`].
pub fn open_merge_groups(io: IoOptions, request: MergeRequest) -> Result<Vec<MergeJob>> {
    let io = Io::new(io)?;
    Ok(MergeJob::open_groups(io, request)?)
}

/// Runs an opened merge and reports on it.
///
/// # Errors
/// As [`merge`].
pub fn run_merge(
    job: MergeJob,
    check: InputCheck,
    observer: &mut dyn Observer,
) -> Result<MergeReport> {
    let mut reports = run_merges_together(vec![job], check, observer)?;
    let report = reports.pop();
    report.ok_or_else(|| EngineError::Internal("a merge without a report".to_owned()).into())
}

/// Runs merges into one directory, one after the other, and publishes their outputs when all are
/// complete: all or none. The observer sees them as one.
///
/// # Errors
/// As [`merge`], from any of them.
pub fn run_merges_together(
    jobs: Vec<MergeJob>,
    check: InputCheck,
    observer: &mut dyn Observer,
) -> Result<Vec<MergeReport>> {
    run_merges_recorded(jobs, check, None, observer)
}

/// As [`run_merges_together`], of the jobs that [`open_merge_groups`] made of one request, and leaves a
/// record of what was read and written, which [`swap`](crate::swap) needs.
///
/// # Errors
/// As [`run_merges_together`], or a failed write of the record.
pub fn run_merges_recorded(
    mut jobs: Vec<MergeJob>,
    check: InputCheck,
    recorder: Option<&Recorder>,
    observer: &mut dyn Observer,
) -> Result<Vec<MergeReport>> {
    let inputs = jobs.first().and_then(MergeJob::inputs_at_open).cloned();
    let mut claimed = None;
    if let [first, others @ ..] = &mut jobs[..] {
        let claim = first.claim()?;
        others.iter_mut().for_each(|job| job.use_claim(&claim));
        claimed = Some(claim);
    }
    let mut reports = Vec::with_capacity(jobs.len());
    let mut staged = Vec::with_capacity(jobs.len());
    let mut done = Progressed::default();
    for job in jobs {
        let before = Usage::now();
        let report = MergeReport::before(&job);
        let io = job.io().clone();
        let mut observer = AfterOthers {
            inner: &mut *observer,
            done,
            reached: done,
        };
        let merged = stage(job, check, &mut observer);
        let (merge, ignored) =
            merged.map_err(|error| because_replaced(error, inputs.as_deref()))?;
        staged.push(merge);
        done = observer.reached;
        let mut report = report;
        report.warnings.extend(ignored);
        reports.push((report, io, Usage::now().since(&before)));
    }
    let record = match (recorder, inputs, &claimed) {
        (Some(recorder), Some(inputs), Some(claim)) => {
            let staged: Vec<PathBuf> = staged.iter().flat_map(StagedMerge::data_paths).collect();
            Some(recorder.write(claim, &staged, &inputs, &|_| true, &[])?)
        }
        _ => None,
    };
    let outcomes = match job::publish(staged) {
        Ok(outcomes) => outcomes,
        Err(error) => {
            if let Some(record) = record {
                record.undo();
            }
            return Err(error.into());
        }
    };
    let mut note = claimed.and_then(|claim| claim.note());
    let reports = reports.into_iter().zip(outcomes);
    Ok(reports
        .map(|((mut report, io, usage), outcome)| {
            let elapsed = outcome.elapsed;
            report.complete(&io, outcome, usage, elapsed);
            report.warnings.extend(note.take());
            report
        })
        .collect())
}

/// The reason why a merge failed, if that is that its inputs were replaced while it read them.
fn because_replaced(error: Error, inputs: Option<&InputsAtOpen>) -> Error {
    match inputs {
        Some(inputs) => Error::from(inputs.reason_for(error.into_engine())),
        None => error,
    }
}

/// Progress of several merges together.
#[derive(Clone, Copy, Default)]
struct Progressed {
    read_bytes: u64,
    rows: u64,
    partitions: u64,
}

/// Adds the progress of the previous merges.
struct AfterOthers<'a> {
    inner: &'a mut dyn Observer,
    done: Progressed,
    reached: Progressed,
}

impl Observer for AfterOthers<'_> {
    fn is_cancelled(&self) -> bool {
        self.inner.is_cancelled()
    }

    fn progress(&mut self, read_bytes: u64, rows: u64, partitions: u64) {
        self.reached = Progressed {
            read_bytes: self.done.read_bytes + read_bytes,
            rows: self.done.rows + rows,
            partitions: self.done.partitions + partitions,
        };
        let reached = self.reached;
        self.inner
            .progress(reached.read_bytes, reached.rows, reached.partitions);
    }

    fn message(&mut self, text: &str) {
        self.inner.message(text);
    }

    fn inputs_read(&mut self, inputs: &[InputRead]) -> EngineResult<()> {
        self.inner.inputs_read(inputs)
    }

    fn before_publish(&mut self, data_path: &Path) -> EngineResult<()> {
        self.inner.before_publish(data_path)
    }
}

/// Runs a merge up to its publication. Also returns sentences on input damage that does not stop it.
fn stage(
    job: MergeJob,
    check: InputCheck,
    observer: &mut dyn Observer,
) -> Result<(StagedMerge, Vec<String>)> {
    let io = job.io().clone();
    match check {
        InputCheck::DataOnly => Ok((job.stage(observer)?, Vec::new())),
        InputCheck::AllComponents => {
            let inputs = InputsToCheck::of(&job);
            let index_ahead = job.budget().index_ahead;
            let (stop, failed) = (AtomicBool::new(false), AtomicBool::new(false));
            let stop = &stop;
            std::thread::scope(|scope| {
                let refused = |error| {
                    // Those that run already end; the scope waits for them.
                    stop.store(true, Ordering::Relaxed);
                    Error::thread("the check of components")(error)
                };
                let (inputs, io, failed) = (&inputs, &io, &failed);
                let check = move || inputs.check(io, stop, failed);
                let started = Builder::new().spawn_scoped(scope, check);
                let mut threads = vec![started.map_err(refused)?];
                let mut feeds = Feeds::default();
                if !inputs.tries.is_empty() {
                    let (ours, theirs) = bti_sidecar_components::channel(&inputs.tries);
                    let follow = move || inputs.follow(io, &theirs, stop, failed);
                    let started = Builder::new().spawn_scoped(scope, follow);
                    threads.push(started.map_err(refused)?);
                    feeds.tries = Some(ours);
                }
                if !inputs.indexed.is_empty() {
                    let (ours, reader) = indexed_partitions::connect(&inputs.indexed, index_ahead);
                    let read = move || inputs.read_indexes(io, reader, stop, failed);
                    let started = Builder::new().spawn_scoped(scope, read);
                    threads.push(started.map_err(refused)?);
                    feeds.indexed = Some(ours);
                }
                let mut checking = Checking {
                    inner: observer,
                    threads,
                    feeds,
                    stop,
                    failed,
                    error: None,
                    ignored: Vec::new(),
                };
                let staged = job.stage(&mut checking);
                stop.store(true, Ordering::Relaxed);
                checking.join();
                match (checking.error.take(), staged) {
                    // The merge was stopped because of it, or failed on the same damage.
                    (Some(error), Err(_)) if failed.load(Ordering::Relaxed) => Err(error),
                    (_, staged) => Ok((staged?, sentences(std::mem::take(&mut checking.ignored)))),
                }
            })
        }
    }
}

/// The inputs of a job, as far as the check of their components needs them.
struct InputsToCheck {
    /// Those of the BIG format, which can be checked by themselves.
    inputs: Vec<InputToCheck>,
    /// Those among them that are read and whose partitions may have a promoted index.
    indexed: Vec<IndexedInput>,
    /// Those of the BTI format, and the compression ratios that their statistics should tell.
    tries: Vec<TrieInput>,
    trie_ratios: Vec<f64>,
    /// Those of the BTI format that are checked but not merged.
    unread_tries: Vec<Arc<OverlappingSstable>>,
    mode: ReadMode,
}

enum InputToCheck {
    OfMerge {
        data_path: PathBuf,
        data_len: u64,
        /// That its statistics should tell.
        compression_ratio: f64,
    },
    /// It is not merged, and other merges may have checked it. There may be many thousands.
    Beside(Arc<OverlappingSstable>),
}

impl InputToCheck {
    fn data_len(&self) -> u64 {
        match self {
            InputToCheck::OfMerge { data_len, .. } => *data_len,
            InputToCheck::Beside(sstable) => sstable.data_len(),
        }
    }
}

/// An input whose other components were looked at.
struct CheckedInput {
    data_path: PathBuf,
    compression_ratio: f64,
    sidecars: Sidecars,
}

/// Inputs that a thread has checked, and the damage that does not stop the merge.
type Checked = Result<(Vec<CheckedInput>, Vec<Finding>)>;

/// Formats the damage that does not stop a merge, a sentence per file.
fn sentences(ignored: Vec<Finding>) -> Vec<String> {
    let mut by_file: BTreeMap<PathBuf, (Finding, usize)> = BTreeMap::new();
    for finding in ignored {
        let path = finding.path.clone();
        by_file.entry(path).or_insert_with(|| (finding, 0)).1 += 1;
    }
    let sentence = |(finding, count): (Finding, usize)| {
        let more = match count {
            1 => String::new(),
            _ => format!(", and {} more", count - 1),
        };
        format!(
            "{} is damaged; the merge goes on without it, since it writes its own, but a node may not find rows through \
             it. {}{more} (`compactor verify` lists all)",
            finding.component,
            finding.statement()
        )
    };
    by_file.into_values().map(sentence).collect()
}

/// Inputs whose components are checked at a time where there are many small ones.
const CHECKED_AT_ONCE: usize = 4;

/// Of inputs with more uncompressed bytes it is not waiting for reads that takes long.
const SMALL_INPUT_BYTES: u64 = 4 << 20;

/// Polling interval of a merge that waits for the check.
const POLL: Duration = Duration::from_millis(1);

impl InputsToCheck {
    fn of(job: &MergeJob) -> InputsToCheck {
        // Those that are dropped unread are trusted by their statistics, and by the index that says where they lie:
        // all the more reason to hold these against something.
        let read = job.inputs().iter().map(|input| (input, true));
        let unread = job.fully_expired().iter().map(|input| (input, false));
        let (big, bti): (Vec<_>, Vec<_>) = read
            .chain(unread)
            .partition(|(input, _)| input.descriptor.version.format() == Format::Big);
        let ratio_of =
            |input: &InputSstable| statistics_consistency::ratio_of(input.compression_info());
        let inputs = big.iter().map(|(input, _)| InputToCheck::OfMerge {
            data_path: input.data_path(),
            data_len: input.data_len(),
            compression_ratio: ratio_of(input),
        });
        let tries = bti.iter().map(|(input, is_read)| TrieInput {
            data_path: input.data_path(),
            data_len: input.data_len(),
            is_read: *is_read,
            tries: input.tries.clone(),
        });
        // All of these files are open at a time, which there may be too many for.
        let may_follow = !job.is_in_passes();
        let indexed = big
            .iter()
            .filter(|(input, is_read)| *is_read && input.may_have_promoted_indexes() && may_follow);
        let indexed = indexed.map(|(input, _)| IndexedInput {
            data_path: input.data_path(),
            data_len: input.data_len(),
            layout: Arc::clone(&input.layout),
            partitioner: input.partitioner,
        });
        let mut to_check = InputsToCheck {
            inputs: inputs.collect(),
            indexed: indexed.collect(),
            tries: tries.collect(),
            trie_ratios: bti.iter().map(|(input, _)| ratio_of(input)).collect(),
            unread_tries: Vec::new(),
            mode: job.options().read_mode,
        };
        // Overlapping SSTables are trusted, too: a filter or key range that hides a key lets tombstones be purged
        // that still shadow it.
        for sstable in job.overlapping() {
            to_check.add_unread(sstable);
        }
        to_check
    }

    fn add_unread(&mut self, sstable: &Arc<OverlappingSstable>) {
        if sstable.is_checked() {
            return;
        }
        match sstable.descriptor().version.format() {
            Format::Big => self.inputs.push(InputToCheck::Beside(Arc::clone(sstable))),
            Format::Bti => {
                self.unread_tries.push(Arc::clone(sstable));
                self.tries.push(TrieInput {
                    data_path: sstable.descriptor().path(Component::Data),
                    data_len: sstable.data_len(),
                    is_read: false,
                    tries: SharedTries::default(),
                });
                // Its ratio was held when it was opened, and nothing will have been read of it.
                self.trie_ratios.push(NO_COMPRESSION_RATIO);
            }
        }
    }

    /// One input after the other: the merge has the processors and the disk to itself otherwise. Of many
    /// small ones some at a time: what takes long is to wait for their reads.
    fn check(&self, io: &Io, stop: &AtomicBool, failed: &AtomicBool) -> Checked {
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
                    compression_ratio,
                    ..
                } => check(data_path).map(|(sidecars, ignored)| {
                    let checked = CheckedInput {
                        data_path: data_path.clone(),
                        compression_ratio: *compression_ratio,
                        sidecars,
                    };
                    Some((checked, ignored))
                }),
                InputToCheck::Beside(sstable) => sstable
                    .check_once(|| {
                        let (_, ignored) = check(&sstable.descriptor().path(Component::Data))?;
                        sidecar_components::refuse_any(ignored)
                    })
                    .map(|()| None),
            };
            if checked.is_err() && !stop.load(Ordering::Relaxed) {
                failed.store(true, Ordering::Relaxed);
            }
            checked
        });
        let (mut checked, mut ignored) = (Vec::new(), Vec::new());
        for result in results {
            if let Some((input, of_input)) = result? {
                checked.push(input);
                ignored.extend(of_input);
            }
        }
        Ok((checked, ignored))
    }

    /// Checks all BTI inputs at once, concurrently with the merge.
    fn follow(
        &self,
        io: &Io,
        batches: &TrieBatches,
        stop: &AtomicBool,
        failed: &AtomicBool,
    ) -> Checked {
        let sidecars = bti_sidecar_components::check(io, &self.tries, batches, self.mode, stop)
            .inspect_err(|error| followed_to(error, failed))?;
        // Those that are not merged come last.
        let merged = self.tries.len() - self.unread_tries.len();
        let (mut checked, mut ignored) = (Vec::new(), Vec::new());
        let inputs = self.tries.iter().zip(&self.trie_ratios).zip(sidecars);
        for (number, ((input, ratio), (sidecars, of_input))) in inputs.enumerate() {
            if number < merged {
                ignored.extend(of_input);
            } else {
                sidecar_components::refuse_any(of_input)
                    .inspect_err(|error| followed_to(error, failed))?;
            }
            checked.push(CheckedInput {
                data_path: input.data_path.clone(),
                compression_ratio: *ratio,
                sidecars,
            });
        }
        for unread in &self.unread_tries {
            unread.check_once(|| Ok::<_, crate::Error>(()))?;
        }
        Ok((checked, ignored))
    }

    /// Checks the promoted indexes of BIG inputs concurrently with the merge.
    fn read_indexes(
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

/// A merge that ends early takes along what it is followed by; that is no failure of the inputs.
fn followed_to(error: &crate::Error, failed: &AtomicBool) {
    if !is_cancelled(error) {
        failed.store(true, Ordering::Relaxed);
    }
}

/// What the merge tells of the partitions that it reads.
#[derive(Debug, Default)]
struct Feeds {
    tries: Option<TrieFeed>,
    indexed: Option<IndexedFeed>,
}

/// Forwards events to the caller's observer, and validates the inputs' components against the data read before
/// anything is published.
struct Checking<'a, 'scope> {
    inner: &'a mut dyn Observer,
    threads: Vec<ScopedJoinHandle<'scope, Checked>>,
    feeds: Feeds,
    stop: &'a AtomicBool,
    failed: &'a AtomicBool,
    error: Option<crate::Error>,
    /// Damage that does not stop the merge.
    ignored: Vec<Finding>,
}

impl Checking<'_, '_> {
    /// Waits for the check; what went wrong stays in `error`.
    fn join(&mut self) -> Option<Vec<CheckedInput>> {
        // The other end of the line sees that nothing more comes.
        self.feeds = Feeds::default();
        let mut all = Vec::new();
        for thread in std::mem::take(&mut self.threads) {
            // It may take long, and only this loop checks for cancellation now.
            while !thread.is_finished() {
                if self.inner.is_cancelled() {
                    self.stop.store(true, Ordering::Relaxed);
                }
                std::thread::sleep(POLL);
            }
            let checked = match thread.join() {
                Ok(checked) => checked,
                Err(_) => {
                    self.failed.store(true, Ordering::Relaxed);
                    Err(EngineError::Internal("the check of components panicked".to_owned()).into())
                }
            };
            match checked {
                Ok((checked, ignored)) => {
                    all.extend(checked);
                    self.ignored.extend(ignored);
                }
                Err(error) => {
                    // One thread's damage makes the other give up.
                    if self.error.as_ref().is_none_or(is_cancelled) {
                        self.error = Some(error);
                    }
                }
            }
        }
        self.error.is_none().then_some(all)
    }
}

impl Observer for Checking<'_, '_> {
    fn is_cancelled(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.inner.is_cancelled()
    }

    fn progress(&mut self, read_bytes: u64, rows: u64, partitions: u64) {
        self.inner.progress(read_bytes, rows, partitions);
    }

    fn message(&mut self, text: &str) {
        self.inner.message(text);
    }

    fn trace(&mut self, data_path: &Path) -> Option<Box<dyn DataTrace>> {
        let Feeds { tries, indexed } = &mut self.feeds;
        let of_tries = tries.as_ref().and_then(|feed| feed.trace(data_path));
        of_tries.or_else(|| indexed.as_mut()?.trace(data_path))
    }

    fn inputs_read(&mut self, inputs: &[InputRead]) -> EngineResult<()> {
        let Some(checked) = self.join() else {
            return Err(EngineError::Cancelled);
        };
        let reads: HashMap<&Path, &InputRead> = inputs
            .iter()
            .map(|read| (read.data_path.as_path(), read))
            .collect();
        for input in checked {
            let Some(read) = reads.get(input.data_path.as_path()) else {
                continue;
            };
            if let Err(error) = agree(&input, read) {
                self.failed.store(true, Ordering::Relaxed);
                self.error = Some(error.into());
                return Err(EngineError::Cancelled);
            }
        }
        self.inner.inputs_read(inputs)
    }

    fn before_publish(&mut self, data_path: &Path) -> EngineResult<()> {
        self.inner.before_publish(data_path)
    }
}

fn is_cancelled(error: &crate::Error) -> bool {
    error.kind() == ErrorKind::Cancelled
}

/// Compares the facts that the other components state about `Data.db` with the data read.
fn agree(input: &CheckedInput, read: &InputRead) -> Result<(), FormatError> {
    let CheckedInput {
        data_path: path,
        compression_ratio,
        sidecars,
    } = input;
    let beside = |component: Component| match Descriptor::parse(path) {
        Ok(file) => file.descriptor.path(component),
        Err(_) => path.to_owned(),
    };
    if let Some(digest) = sidecars.digest.filter(|d| *d != read.digest) {
        return Err(FormatError::corrupt(
            "digest",
            0,
            format!("{}, the CRC32 of Data.db", read.digest),
            digest.to_string(),
        )
        .with_file(&beside(Component::Digest), Component::Digest));
    }
    if sidecars.places.is_some_and(|places| places != read.places) {
        return Err(FormatError::corrupt(
            "index",
            0,
            "the keys and positions of the partitions in Data.db",
            "others; `compactor verify` tells which",
        )
        .with_file(&beside(Component::Index), Component::Index));
    }
    let seen = RowsSeen {
        rows: read.rows.rows,
        empty_static_rows: read.rows.empty_static_rows,
    };
    let mismatches = sidecars
        .consistency
        .map(|consistency| consistency.check(*compression_ratio, seen))
        .unwrap_or_default();
    match mismatches
        .into_iter()
        .find(|m| m.severity == Severity::Damage)
    {
        None => Ok(()),
        Some(m) => Err(FormatError::corrupt(
            "stats",
            0,
            format!("{}: {}, as of the data", m.field, m.expected),
            m.found,
        )
        .with_file(&beside(Component::Statistics), Component::Statistics)),
    }
}
