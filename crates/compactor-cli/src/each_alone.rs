//! Commands that rewrite each SSTable alone: a damaged one is named and left out, the others are
//! written.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use compactor::catalog::{self, Catalog};
use compactor::concurrent::run_merges;
use compactor::io::Io;
use compactor::output_directory::OutputClaim;
use compactor::report::lossy;
use compactor::{Error, ErrorKind, InputCheck, MergeReport, MergeRequest, OutputCompression};
use serde::Serialize;

use crate::exit_code::{self, Writes};
use crate::flags::ByteSize;
use crate::io_args::IoArgs;
use crate::output::say;
use crate::output_form::OutputForm;
use crate::progress::{Progress, ProgressMode};
use crate::shared_progress::SharedProgress;
use crate::text_table::counted;

/// How the SSTables are rewritten.
pub struct Rewrite<'a> {
    /// How bytes move.
    pub io: &'a IoArgs,
    /// How many at a time.
    pub concurrent: usize,
    /// Verify outputs before they are published.
    pub verify: bool,
    /// How progress is shown.
    pub progress: ProgressMode,
    /// Set when the person asks to stop.
    pub interrupted: Arc<AtomicBool>,
    /// What was done to an SSTable, such as `upgraded`.
    pub done: &'static str,
}

/// What became of the SSTables.
pub struct Rewritten {
    /// Of those that were rewritten.
    pub reports: Vec<MergeReport>,
    /// The others, but for those not begun or given up when it was interrupted.
    failed: Vec<Failed>,
    /// From the first read to the last sync.
    elapsed_s: f64,
    first_error: Option<Error>,
    is_cut_off: bool,
}

/// An SSTable of which nothing was written.
#[derive(Debug, Serialize)]
pub struct Failed {
    #[serde(serialize_with = "lossy")]
    input: PathBuf,
    error: String,
}

/// What such a command's summary says of all SSTables together.
#[derive(Debug, Serialize)]
pub struct Totals<'a> {
    sstables: usize,
    failed: &'a [Failed],
    input_bytes: u64,
    output_bytes: u64,
    rows: u64,
    elapsed_s: f64,
    warnings: BTreeSet<&'a str>,
}

impl Totals<'_> {
    /// Nothing went wrong.
    pub fn is_sound(&self) -> bool {
        self.failed.is_empty()
    }

    /// The last lines of a summary in text. `done` says what was done to how many, such as
    /// `upgraded 2`.
    ///
    /// # Errors
    /// Those of the formatter.
    pub fn show(&self, text: &mut String, done: &str, into: &str) -> std::fmt::Result {
        writeln!(
            text,
            "{done} of {}{into} in {:.2} s: {}, {} -> {} on disk",
            counted(self.sstables as u64, "SSTable"),
            self.elapsed_s,
            counted(self.rows, "row"),
            ByteSize(self.input_bytes),
            ByteSize(self.output_bytes)
        )?;
        for note in &self.warnings {
            writeln!(text, "note: {note}")?;
        }
        Ok(())
    }
}

/// What to do with the SSTable `path` alone, as far as the options that all these commands have say
/// it; `concurrent` of them share threads and memory.
pub fn request(
    path: &Path,
    output: &Path,
    catalog: &Catalog,
    form: &OutputForm,
    compression: OutputCompression,
    io: &IoArgs,
    concurrent: usize,
) -> MergeRequest {
    let mut request = MergeRequest::new(vec![path.to_owned()], output);
    request.version = form.sstable_version;
    request.table = catalog.schema.as_ref().map(|(_, table)| table.clone());
    request.format = form.sstable_format();
    request.compression = compression;
    if let Some(options) = catalog.schema.as_ref().map(|(_, table)| &table.options) {
        request.bloom_filter_fp_chance = options.bloom_filter_fp_chance;
        if let Some(interval) = options.min_index_interval {
            request.min_index_interval = interval.max(1);
        }
    }
    io.apply(&mut request);
    request.threads = (io.threads() / concurrent).max(1);
    request.memory_bytes = io.memory_bytes() / concurrent;
    request
}

impl Rewrite<'_> {
    /// Carries the requests out, of one SSTable each. Errors are said on stderr as they are found.
    ///
    /// # Errors
    /// If the output directory cannot be claimed, or the I/O layer cannot be set up.
    pub fn run(&self, mut requests: Vec<MergeRequest>) -> Result<Rewritten, Error> {
        let inputs: Vec<PathBuf> = (requests.iter())
            .flat_map(|request| request.inputs.iter().cloned())
            .collect();
        // All of them go into one directory, which is this run's until the last is there.
        if let [first, others @ ..] = &mut requests[..] {
            let claim = OutputClaim::take(
                &first.output_directory,
                first.existing_output,
                inputs.first().map(PathBuf::as_path),
            )?;
            for other in others {
                other.claim = Some(Arc::clone(&claim));
            }
            first.claim = Some(claim);
        }
        let requests = requests;
        let sizes = inputs.iter();
        let total_bytes = sizes.map(|p| catalog::roughly_uncompressed_bytes(p)).sum();
        let io = Io::new(self.io.options()).map_err(Error::from)?;
        let progress = SharedProgress::new(
            Progress::new(self.progress, total_bytes, Arc::clone(&self.interrupted)),
            requests.len(),
            self.verify.then(|| (io.clone(), self.io.read_io)),
        );
        let started = Instant::now();
        let check = InputCheck::AllComponents;
        let results = run_merges(
            &io,
            requests.len(),
            &|number| requests[number].clone(),
            self.concurrent,
            check,
            &progress,
        );
        progress.finish();
        let mut rewritten = Rewritten {
            reports: Vec::new(),
            failed: Vec::new(),
            elapsed_s: 0.0,
            first_error: None,
            is_cut_off: false,
        };
        let all = inputs.len();
        for (input, result) in inputs.into_iter().zip(results) {
            match result {
                Some(Ok(report)) => rewritten.reports.push(report),
                Some(Err(error)) if error.kind() != ErrorKind::Cancelled => {
                    say(format_args!("compactor: {error}"));
                    rewritten.failed.push(Failed {
                        input,
                        error: error.to_string(),
                    });
                    rewritten.first_error.get_or_insert(error);
                }
                // Given up, or not begun.
                Some(Err(_)) | None => {}
            }
        }
        if let Some(error) = &rewritten.first_error {
            exit_code::say_remedy(error, Writes::InParts);
        }
        let done = rewritten.reports.len();
        rewritten.is_cut_off =
            done + rewritten.failed.len() < all && self.interrupted.load(Ordering::Relaxed);
        if rewritten.is_cut_off {
            say(format_args!(
                "compactor: interrupted; {done} of {} were {}",
                counted(all as u64, "SSTable"),
                self.done
            ));
        }
        rewritten.elapsed_s = started.elapsed().as_secs_f64();
        Ok(rewritten)
    }
}

impl Rewritten {
    /// The `Data.db` of every output.
    pub fn outputs(&self) -> Vec<&Path> {
        let outputs = self.reports.iter().flat_map(|report| &report.outputs);
        outputs.map(|o| o.data_path.as_path()).collect()
    }

    /// All together, of so many SSTables that were named.
    pub fn totals(&self, sstables: usize) -> Totals<'_> {
        let reports = self.reports.iter();
        let notes = reports.flat_map(|r| r.io.fallbacks.iter().chain(&r.warnings));
        Totals {
            sstables,
            failed: &self.failed,
            input_bytes: self.reports.iter().map(|r| r.input_bytes).sum(),
            output_bytes: self.reports.iter().map(|r| r.output_bytes).sum(),
            rows: self.reports.iter().map(|r| r.rows_written).sum(),
            elapsed_s: self.elapsed_s,
            // Each once.
            warnings: notes.map(String::as_str).collect(),
        }
    }

    /// What the command tells its caller.
    pub fn exit_code(&self) -> ExitCode {
        match &self.first_error {
            _ if self.is_cut_off => ExitCode::from(exit_code::INTERRUPTED),
            Some(error) => ExitCode::from(exit_code::of(error)),
            None => ExitCode::SUCCESS,
        }
    }
}
