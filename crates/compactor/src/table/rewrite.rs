//! Rewriting of SSTables one by one: a damaged one is left out, the others are written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use compactor_engine::input::InputSstable;
use compactor_engine::job::{OutputSplit, free_files};
use compactor_engine::publish::{OutputIds, QuietDirectories, Replaceable, next_id};
use compactor_io::ReadMode;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::sstable_id::SstableId;
use serde::{Serialize, Serializer};

use super::output_directory::{self, ExistingOutput, OutputClaim};
use super::rewrite_record::RewriteRecord;
use super::verified::OutputCheck;
use super::{NextSteps, OutputForm, Resources, Table, roughly_uncompressed_bytes, strip_ttl};
use compactor_engine::merge::Observer;

use crate::MergeRequest;
use crate::concurrent::{
    ConcurrentMerges, MIN_MEMORY, SharedObserver, files_of_each, jobs_at_once,
};
use crate::merge::open_merge;
use crate::report::{MergeReport, PageCache, SstableReport, lossy};
use crate::run_record::Recorder;
use crate::{Error, ErrorKind, Result};
use compactor_check::input_check::InputCheck;

/// Rewrites each SSTable in another form (`nodetool upgradesstables -a`). Rows, tombstones, repair state,
/// level and id are kept; expired cells become tombstones, unless TTLs are removed, and nothing is purged.
#[derive(Clone, Debug)]
#[must_use]
pub struct Upgrade<'t> {
    table: &'t Table,
    form: OutputForm,
    resources: Resources,
    concurrent: Option<usize>,
    strips_ttl: bool,
    verifies: bool,
}

impl<'t> Upgrade<'t> {
    pub(super) fn new(table: &'t Table, form: OutputForm) -> Upgrade<'t> {
        Upgrade {
            table,
            form,
            resources: Resources::default(),
            concurrent: None,
            strips_ttl: false,
            verifies: false,
        }
    }

    /// Removes the TTL of cells and rows before expiry is judged, so that expired ones become live again.
    /// Tombstones stay, also those that expired cells have become. The form need not change then.
    pub fn strip_ttl(mut self, strips_ttl: bool) -> Upgrade<'t> {
        self.strips_ttl = strips_ttl;
        self
    }

    /// I/O modes, threads and memory, which concurrent rewrites share.
    pub fn resources(mut self, resources: Resources) -> Upgrade<'t> {
        self.resources = resources;
        self
    }

    /// Limit on SSTables that are rewritten concurrently. Default: the number of threads.
    pub fn concurrent(mut self, sstables: usize) -> Upgrade<'t> {
        self.concurrent = Some(sstables);
        self
    }

    /// Verifies each output before it is published.
    pub fn verify(mut self, verifies: bool) -> Upgrade<'t> {
        self.verifies = verifies;
        self
    }

    /// Uncompressed bytes that will be read, roughly.
    pub fn expected_bytes(&self) -> u64 {
        self.table.roughly_uncompressed_bytes()
    }

    /// Opens the SSTables and plans how they are rewritten. Nothing is written.
    ///
    /// # Errors
    /// Those of [`Upgrade::into`]. An SSTable that cannot be opened is in the plan instead.
    pub fn plan(&self, output: impl AsRef<Path>) -> Result<RewritePlan> {
        let output = output.as_ref();
        let (requests, _) = self.requests(output)?;
        plan(requests, output, &self.resources, |_| 1)
    }

    /// Rewrites into a directory, which is created if it does not exist.
    ///
    /// # Errors
    /// A form like the inputs', two SSTables of one id, or an output directory that cannot be claimed. An
    /// SSTable that cannot be rewritten is in the outcome instead.
    pub fn into(
        self,
        output: impl AsRef<Path>,
        observer: &mut dyn Observer,
    ) -> Result<RewriteOutcome> {
        let (requests, concurrent) = self.requests(output.as_ref())?;
        let rewrites = Rewrites {
            table: self.table,
            recorder: Recorder::of_rewrites("upgrade", self.strips_ttl),
            resources: &self.resources,
            concurrent,
            verifies: self.verifies,
        };
        let mut outcome = rewrites.run(requests, observer)?;
        if let Some(first) = outcome.reports.first_mut() {
            first.warnings.extend(self.table.kept_for_transactions());
            if self.strips_ttl {
                first.warnings.extend(strip_ttl::notes(self.table));
            }
        }
        Ok(outcome)
    }

    /// A request for each SSTable, and how many of them run at once.
    fn requests(&self, output: &Path) -> Result<(Vec<MergeRequest>, usize)> {
        if !self.strips_ttl {
            self.form.refuse_no_change()?;
        }
        output_directory::check(output, self.table)?;
        let sstables = self.table.sstables.len();
        let share = Share::of_each(&self.resources, MIN_MEMORY, self.concurrent, sstables);
        let quiet = QuietDirectories::default();
        let mut ids = BTreeSet::new();
        let mut requests = Vec::with_capacity(self.table.sstables.len());
        for path in &self.table.sstables {
            let id = Descriptor::parse(path)
                .map_err(|e| Error::invalid(format!("{}: {e}", path.display())))?
                .descriptor
                .id;
            if !ids.insert(id.to_string()) {
                return Err(Error::invalid(format!(
                    "two SSTables have the id {id}; upgrade one directory at a time",
                )));
            }
            let mut request = self
                .table
                .rewrite_of(path, output, &self.form, &share.resources)?;
            request.ids = Some(OutputIds::starting_at(id));
            request.quiet_directories = quiet.clone();
            request.strip_ttl = self.strips_ttl;
            request.open_files = Some(share.open_files);
            requests.push(request);
        }
        Ok((requests, share.concurrent))
    }
}

/// How many SSTables are rewritten at once, and what each of them may use.
pub(super) struct Share {
    pub(super) concurrent: usize,
    pub(super) resources: Resources,
    pub(super) open_files: u64,
}

impl Share {
    /// Divides resources by the number of `sstables` that are rewritten at once: `asked`, or one per thread, if memory
    /// and descriptors suffice. Each takes `memory_of_one`.
    pub(super) fn of_each(
        resources: &Resources,
        memory_of_one: usize,
        asked: Option<usize>,
        sstables: usize,
    ) -> Share {
        let (threads, open_files) = (resources.threads(), free_files());
        let concurrent = jobs_at_once(
            asked.unwrap_or(threads),
            threads,
            (resources.memory_bytes, memory_of_one),
            open_files,
            sstables,
        );
        Share {
            concurrent,
            resources: Resources {
                threads: (threads / concurrent).max(1),
                memory_bytes: resources.memory_bytes / concurrent,
                ..resources.clone()
            },
            open_files: files_of_each(open_files, concurrent),
        }
    }
}

/// Splits each SSTable larger than a size into several (`sstablesplit`). Partitions are never divided.
/// Rows, tombstones and repair state are kept, the level becomes 0; expired cells become tombstones, and
/// nothing is purged.
#[derive(Clone, Debug)]
#[must_use]
pub struct Split<'t> {
    table: &'t Table,
    bytes: u64,
    form: OutputForm,
    resources: Resources,
    verifies: bool,
}

/// An SSTable that is not larger than the size.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Unsplit {
    /// `Data.db`.
    #[serde(serialize_with = "lossy")]
    pub data_path: PathBuf,
    /// Its length.
    pub bytes: u64,
}

/// Plan of rewriting each SSTable on its own.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RewritePlan {
    /// Those that would be rewritten.
    pub planned: Vec<PlannedRewrite>,
    /// Those that cannot be opened.
    pub failures: Vec<Failure>,
}

/// How one SSTable would be rewritten.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PlannedRewrite {
    /// `Data.db`.
    #[serde(serialize_with = "lossy")]
    pub data_path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Number of outputs if they compress as well as the input.
    pub expected_outputs: u64,
    /// Version of the outputs.
    pub output_version: String,
}

impl<'t> Split<'t> {
    pub(super) fn new(table: &'t Table, bytes: u64) -> Split<'t> {
        Split {
            table,
            bytes,
            form: OutputForm::default(),
            resources: Resources::default(),
            verifies: false,
        }
    }

    /// Version, format and compression of the outputs.
    pub fn form(mut self, form: OutputForm) -> Split<'t> {
        self.form = form;
        self
    }

    /// I/O modes, threads and memory.
    pub fn resources(mut self, resources: Resources) -> Split<'t> {
        self.resources = resources;
        self
    }

    /// Verifies each output before it is published.
    pub fn verify(mut self, verifies: bool) -> Split<'t> {
        self.verifies = verifies;
        self
    }

    /// SSTables that are not larger than the size, and will be left where they are.
    ///
    /// # Errors
    /// A failed `stat` of a `Data.db`.
    pub fn unsplit(&self) -> Result<Vec<Unsplit>> {
        Ok(self.by_size()?.1)
    }

    /// `Data.db` of SSTables that are larger (`isSSTableLargerEnough`), and the others. One that cannot be opened may have
    /// been larger: it is among the former, and fails.
    fn by_size(&self) -> Result<(Vec<&'t Path>, Vec<Unsplit>)> {
        let (io, mode) = (self.resources.io()?, ReadMode::Buffered);
        let cannot_be_opened = |path: &Path| InputSstable::open(&io, path, mode).is_err();
        let (mut large, mut small) = (Vec::new(), Vec::new());
        for path in &self.table.sstables {
            let metadata = std::fs::metadata(path)
                .map_err(|e| Error::invalid(format!("{}: {e}", path.display())))?;
            if metadata.len() > self.bytes || cannot_be_opened(path) {
                large.push(path.as_path())
            } else {
                small.push(Unsplit {
                    data_path: path.clone(),
                    bytes: metadata.len(),
                })
            }
        }
        Ok((large, small))
    }

    fn requests(&self, output: &Path) -> Result<Vec<MergeRequest>> {
        output_directory::check(output, self.table)?;
        let (large, _) = self.by_size()?;
        let ids = self.table.ids_in_sequence(output)?;
        let quiet = QuietDirectories::default();
        let request = |path: &Path| {
            let mut request = self
                .table
                .rewrite_of(path, output, &self.form, &self.resources)?;
            request.split = OutputSplit::MaxBytes(self.bytes);
            request.ids = has_id_in_sequence(path).then(|| ids.clone());
            request.quiet_directories = quiet.clone();
            Ok(request)
        };
        large.into_iter().map(request).collect()
    }

    /// Opens the SSTables that are larger and plans their split. Nothing is written.
    ///
    /// # Errors
    /// An output directory that a run would refuse. An SSTable that cannot be opened is in the plan instead.
    pub fn plan(&self, output: impl AsRef<Path>) -> Result<RewritePlan> {
        let output = output.as_ref();
        let outputs_of = |bytes: u64| bytes.div_ceil(self.bytes.max(1));
        plan(self.requests(output)?, output, &self.resources, outputs_of)
    }

    /// Splits into a directory, which is created if it does not exist. The outputs of an SSTable appear all
    /// or none.
    ///
    /// # Errors
    /// An output directory that cannot be claimed. An SSTable that cannot be split is in the outcome instead.
    pub fn into(
        self,
        output: impl AsRef<Path>,
        observer: &mut dyn Observer,
    ) -> Result<RewriteOutcome> {
        let requests = self.requests(output.as_ref())?;
        let rewrites = Rewrites {
            table: self.table,
            recorder: Recorder::of_rewrites("split", false),
            resources: &self.resources,
            // One after the other, so that the ids of an SSTable's outputs are consecutive.
            concurrent: 1,
            verifies: self.verifies,
        };
        let mut outcome = rewrites.run(requests, observer)?;
        if let Some(first) = outcome.reports.first_mut() {
            first.warnings.extend(self.table.kept_for_transactions());
        }
        Ok(outcome)
    }
}

/// Whether the id is a number, and so are those of what is made of the SSTable.
pub(super) fn has_id_in_sequence(data_path: &Path) -> bool {
    let parsed = Descriptor::parse(data_path);
    parsed.is_ok_and(|file| matches!(file.descriptor.id, SstableId::Sequence(_)))
}

impl Table {
    /// Ids of what is made of the SSTables whose ids are numbers. Directories are listed once for all of them: there
    /// may be tens of thousands.
    pub(super) fn ids_in_sequence(&self, output: &Path) -> Result<OutputIds> {
        // One that is gone is reported when it is opened.
        let is_numbered = |path: &&PathBuf| has_id_in_sequence(path) && path.exists();
        let numbered: Vec<PathBuf> = self.sstables.iter().filter(is_numbered).cloned().collect();
        next_id(output, &numbered, &[]).map(OutputIds::starting_at)
    }

    /// A merge of one SSTable alone, which purges nothing.
    fn rewrite_of(
        &self,
        path: &Path,
        output: &Path,
        form: &OutputForm,
        resources: &Resources,
    ) -> Result<MergeRequest> {
        let mut request = MergeRequest::new(vec![path.to_owned()], output);
        request.table = self.schema().cloned();
        request.keeps_expired = self.kept_for_transactions().is_some();
        form.apply(self, &mut request)?;
        resources.apply(&mut request);
        Ok(request)
    }
}

/// Results of rewriting each SSTable on its own, also where some failed: see [`RewriteOutcome::into_result`].
#[derive(Debug)]
#[must_use = "it may hold failures"]
#[non_exhaustive]
pub struct RewriteOutcome<R = MergeReport> {
    /// Reports of the rewritten SSTables.
    pub reports: Vec<R>,
    /// SSTables that failed; nothing was written for them. Or the record of the run, without which no output can be
    /// swapped.
    pub failures: Vec<Failure>,
    /// Cancelled before all SSTables were rewritten or had failed.
    pub is_interrupted: bool,
    /// Seconds from the first read to the last sync.
    pub elapsed_s: f64,
    /// Sentences on I/O modes that were not available.
    pub notes: Vec<String>,
    /// The command that puts the outputs into the place of the SSTables that were rewritten, if these are in the
    /// directory of a node.
    pub next_steps: NextSteps,
}

impl<R> RewriteOutcome<R> {
    pub(super) fn new() -> RewriteOutcome<R> {
        RewriteOutcome {
            reports: Vec::new(),
            failures: Vec::new(),
            is_interrupted: false,
            elapsed_s: 0.0,
            notes: Vec::new(),
            next_steps: NextSteps::default(),
        }
    }

    /// Adds the results of all inputs. Returns those that were rewritten, each with its outputs.
    pub(super) fn add<'p>(
        &mut self,
        inputs: &'p [PathBuf],
        results: Vec<Option<Result<R>>>,
        outputs_of: impl Fn(&R) -> Vec<SstableReport>,
        observer: &SharedObserver<'_>,
    ) -> Vec<(&'p Path, Vec<SstableReport>)> {
        let mut rewritten = Vec::with_capacity(inputs.len());
        for (data_path, result) in inputs.iter().zip(results) {
            match result {
                Some(Ok(report)) => {
                    rewritten.push((data_path.as_path(), outputs_of(&report)));
                    self.reports.push(report);
                }
                Some(Err(error)) if error.kind() != ErrorKind::Cancelled => {
                    let data_path = data_path.clone();
                    self.failures.push(Failure { data_path, error });
                }
                // Given up, or not begun.
                Some(Err(_)) | None => {}
            }
        }
        let ended = self.reports.len() + self.failures.len();
        self.is_interrupted = ended < inputs.len() && observer.is_cancelled();
        rewritten
    }

    /// Writes the record of the SSTables that were `rewritten`, each with its outputs; `rows_lost` if rows of some were lost.
    pub(super) fn record(
        &mut self,
        record: &RewriteRecord,
        table: &Table,
        rewritten: Vec<(&Path, Vec<SstableReport>)>,
        rows_lost: bool,
    ) {
        match record.end(table, rewritten.into_iter(), rows_lost) {
            Ok(next_steps) => self.next_steps = next_steps,
            // The outputs are in place, but cannot be swapped.
            Err(error) => self.failures.push(Failure {
                data_path: record.path(),
                error,
            }),
        }
    }

    /// The reports, if all SSTables were rewritten. Rows may be lost by a scrub nevertheless: see
    /// [`ScrubReport::is_lossy`](crate::scrub::ScrubReport::is_lossy).
    ///
    /// # Errors
    /// The first failure, or cancellation. SSTables that were rewritten before are in place.
    pub fn into_result(self) -> Result<Vec<R>> {
        match self.failures.into_iter().next() {
            Some(failure) => Err(failure.error),
            None if self.is_interrupted => Err(Error::Cancelled),
            None => Ok(self.reports),
        }
    }
}

/// An SSTable that failed, so that nothing was written for it, or the record of the run.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Failure {
    /// `Data.db`, or the record.
    #[serde(serialize_with = "lossy")]
    pub data_path: PathBuf,
    /// The reason.
    #[serde(serialize_with = "as_text")]
    pub error: Error,
}

fn as_text<S: Serializer>(error: &Error, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(error)
}

/// Opens the SSTable of each request. `outputs_of` estimates the number of its outputs from the length of `Data.db`.
fn plan(
    requests: Vec<MergeRequest>,
    output: &Path,
    resources: &Resources,
    outputs_of: impl Fn(u64) -> u64,
) -> Result<RewritePlan> {
    OutputClaim::check(output, ExistingOutput::Refuse, Replaceable::default())?;
    let mut plan = RewritePlan::default();
    for request in requests {
        let data_path = request.inputs[0].clone();
        match open_merge(resources.io_options(), request) {
            Ok(job) => {
                let output_version = job.settings().descriptor.version.to_string();
                plan.planned
                    .extend(job.inputs().iter().map(|input| PlannedRewrite {
                        data_path: input.data_path(),
                        bytes: input.data.len(),
                        expected_outputs: outputs_of(input.data.len()),
                        output_version: output_version.clone(),
                    }));
            }
            Err(error) => plan.failures.push(Failure { data_path, error }),
        }
    }
    Ok(plan)
}

/// Whether an error of one SSTable would be one of all others: those are not begun.
pub(super) fn is_of_all_sstables(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::NoSpace => !error.is_file_too_large(),
        ErrorKind::Internal | ErrorKind::Cancelled => true,
        _ => false,
    }
}

/// Rewrites of SSTables one by one into one output directory.
struct Rewrites<'a> {
    table: &'a Table,
    recorder: Recorder,
    resources: &'a Resources,
    /// How many run at once.
    concurrent: usize,
    verifies: bool,
}

impl Rewrites<'_> {
    /// Runs requests of one SSTable each.
    fn run(
        self,
        mut requests: Vec<MergeRequest>,
        observer: &mut dyn Observer,
    ) -> Result<RewriteOutcome> {
        let mut outcome = RewriteOutcome::new();
        let Some(first) = requests.first() else {
            return Ok(outcome);
        };
        let inputs: Vec<PathBuf> = (requests.iter())
            .flat_map(|request| request.inputs.iter().cloned())
            .collect();
        // Claimed until the last output and the record are there.
        let replaceable = Replaceable::of_inputs(&inputs);
        let claim = OutputClaim::take(&first.output_directory, first.existing_output, replaceable)?;
        for request in &mut requests {
            request.claim = Some(Arc::clone(&claim));
        }
        let requests = requests;
        let record = RewriteRecord::begin(self.recorder, &claim, &inputs)?;
        let io = self.resources.io()?;
        let check = OutputCheck::new(self.verifies, &io, self.resources.read_mode);
        let observer = &SharedObserver::new(observer);
        let started = Instant::now();
        let merges = ConcurrentMerges {
            io: &io,
            concurrent: self.concurrent,
            input_check: InputCheck::AllComponents,
            output_check: &check,
            page_cache: PageCache::Counted,
            observer,
            previous_merges: 0,
            ends_all: is_of_all_sstables,
        };
        let results = merges.run(requests.len(), &|number| requests[number].clone());
        let outputs_of = |report: &MergeReport| report.outputs.clone();
        let rewritten = outcome.add(&inputs, results, outputs_of, observer);
        outcome.elapsed_s = started.elapsed().as_secs_f64();
        outcome.notes = io.notes();
        outcome.record(&record, self.table, rewritten, false);
        Ok(outcome)
    }
}

impl Split<'_> {
    /// Uncompressed bytes of the SSTables that will be split, roughly.
    ///
    /// # Errors
    /// A failed `stat` of a `Data.db`.
    pub fn expected_bytes(&self) -> Result<u64> {
        let (large, _) = self.by_size()?;
        Ok(large.into_iter().map(roughly_uncompressed_bytes).sum())
    }
}
