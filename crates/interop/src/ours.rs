//! Calls of our own merge and dump: through the facade, or as the command that `COMPACTOR_BIN` names.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use compactor::dump::DumpOptions;
use compactor::metadata::MetadataOptions;
use compactor::{InputCheck, NoObserver, OutputCompression, OutputSplit, Scope, TombstoneOption};
use compactor_io::{Io, IoOptions};
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::info::CompressionParams;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::schema::Schema;

use crate::files;
use crate::program;

/// Settings of a merge.
#[derive(Debug, Clone, Default)]
pub struct MergeRequest {
    /// Version of the output, such as `pa`.
    pub version: String,
    /// The clock.
    pub now_s: i64,
    /// Tombstones older than this are purged; `None` purges nothing.
    pub gc_before_s: Option<i64>,
    /// Whether the inputs are all SSTables of the table.
    pub complete: bool,
    /// SSTables outside the merge, which prevent purging.
    pub others: Vec<PathBuf>,
    /// Data that these SSTables shadow and so remove from the merge; as in the schema when absent.
    pub provided: Option<TombstoneOption>,
    /// Whether rows without live liveness have no data; as in the schema when absent.
    pub strict_liveness: Option<bool>,
    /// The table's schema.cql.
    pub schema: Option<PathBuf>,
    /// LZ4 chunk length in KiB, or no compression; that of the inputs when absent.
    pub compression: Option<Compression>,
}

/// Compression of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Data.db is not compressed.
    None,
    /// LZ4 with this chunk length.
    Lz4 {
        /// In KiB, a power of two.
        chunk_kib: u32,
    },
}

/// Merges the inputs (Data.db files) into `output_dir`; returns the output's Data.db, or `None` when everything was
/// purged.
pub fn merge(
    inputs: &[PathBuf],
    output_dir: &Path,
    request: &MergeRequest,
) -> Result<Option<PathBuf>> {
    let mut found = merge_to_size(inputs, output_dir, request, None)?;
    ensure!(
        found.len() <= 1,
        "the merge left {} SSTables, expected at most one",
        found.len()
    );
    Ok(found.pop())
}

/// Merges the inputs into outputs of a maximum size; returns each output's Data.db in the order of their ids.
pub fn merge_to_size(
    inputs: &[PathBuf],
    output_dir: &Path,
    request: &MergeRequest,
    max_sstable_size: Option<u64>,
) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(output_dir)?;
    match std::env::var_os("COMPACTOR_BIN") {
        Some(binary) => {
            let mut command = Command::new(binary);
            command.args(["merge", "--flat"]);
            if let Some(size) = max_sstable_size {
                command.args(["--max-sstable-size", &size.to_string()]);
            }
            by_command(command, inputs, output_dir, request)?;
        }
        None => {
            let mut options = options(inputs, output_dir, request)?;
            options.split = max_sstable_size.map_or(OutputSplit::None, OutputSplit::MaxBytes);
            compactor::merge::merge(options, &mut NoObserver)?;
        }
    }
    let mut found = files::data_files(output_dir)?;
    found.sort_by_key(|path| Descriptor::parse(path).map(|file| file.descriptor.id).ok());
    Ok(found)
}

/// Merges inputs of several repair states; returns each state with its output's Data.db.
pub fn merge_groups(
    inputs: &[PathBuf],
    output_dir: &Path,
    request: &MergeRequest,
) -> Result<Vec<(String, Option<PathBuf>)>> {
    let options = options(inputs, output_dir, request)?;
    let jobs =
        compactor::MergeJob::open_groups(compactor::Io::new(IoOptions::default())?, options)?;
    let check = InputCheck::AllComponents;
    let reports = compactor::merge::run_merges(jobs, check, None, &mut NoObserver)?;
    Ok(reports
        .into_iter()
        .map(|report| {
            let output = report.outputs.into_iter().next();
            (report.repair.state, output.map(|o| o.data_path))
        })
        .collect())
}

/// The options of a merge through the library.
pub fn options(
    inputs: &[PathBuf],
    output_dir: &Path,
    request: &MergeRequest,
) -> Result<compactor::MergeRequest> {
    let mut options = compactor::MergeRequest::new(inputs.to_vec(), output_dir);
    options.now_s = request.now_s;
    options.gc_before_s = request.gc_before_s;
    options.version = Some(request.version.parse()?);
    options.scope = if request.complete {
        Scope::Complete
    } else {
        Scope::Overlapping(request.others.clone())
    };
    if let Some(path) = &request.schema {
        let schema = Schema::parse(&std::fs::read_to_string(path)?)?;
        let table = schema.only_table()?;
        options.strict_liveness = table.strict_liveness == Some(true);
        options.only_purge_repaired = table.only_purge_repaired_tombstones();
        let provided = table.compaction_option("provide_overlapping_tombstones");
        options.overlapping_tombstones = provided
            .and_then(TombstoneOption::from_name)
            .unwrap_or_default();
        options.table = Some(table.clone());
    }
    if let Some(strict_liveness) = request.strict_liveness {
        options.strict_liveness = strict_liveness;
    }
    if let Some(provided) = request.provided {
        options.overlapping_tombstones = provided;
    }
    options.compression = match request.compression {
        None => OutputCompression::AsNewestInput,
        Some(Compression::None) => OutputCompression::None,
        Some(Compression::Lz4 { chunk_kib }) => {
            OutputCompression::Params(CompressionParams::new(Codec::Lz4, chunk_kib * 1024))
        }
    };
    let len = data_len(inputs)?;
    options.threads = [1, 2, 3, 8][(len / 2 % 4) as usize];
    if len % 2 == 1 {
        options.range_bytes = Some(1);
    }
    Ok(options)
}

/// Changes a merge to passes of two inputs at a time.
#[must_use]
pub(crate) fn in_passes(mut options: compactor::MergeRequest) -> compactor::MergeRequest {
    let others = options.scope.named().len() as u64;
    // Overlapping SSTables are all read at the same time as two inputs; four descriptors each.
    options.open_files = Some(match options.overlapping_tombstones {
        TombstoneOption::None => 0,
        TombstoneOption::Row | TombstoneOption::Cell => 4 * (2 + others),
    });
    options
}

/// Length of the inputs. It decides the number of threads, and whether a merge is split into as many ranges as
/// possible, so that a repeated merge has the same options.
fn data_len(inputs: &[PathBuf]) -> Result<u64> {
    let lens = inputs
        .iter()
        .map(|input| Ok(std::fs::metadata(input)?.len()));
    lens.sum()
}

fn by_command(
    mut command: Command,
    inputs: &[PathBuf],
    output_dir: &Path,
    request: &MergeRequest,
) -> Result<()> {
    if request.strict_liveness == Some(true) {
        bail!("the command takes strict liveness from a view's schema only");
    }
    command.args(inputs).arg("--output").arg(output_dir);
    command.args([
        "--sstable-version",
        &request.version,
        "--now",
        &request.now_s.to_string(),
    ]);
    match request.gc_before_s {
        Some(gc_before) => command.arg("--gc-before").arg(gc_before.to_string()),
        None => command.arg("--no-purge"),
    };
    if request.complete {
        command.arg("--complete");
    }
    if let Some(path) = &request.schema {
        command.arg("--schema").arg(path);
    }
    for other in &request.others {
        command.arg("--overlapping").arg(other);
    }
    if let Some(provided) = request.provided {
        command.args(["--provide-overlapping-tombstones", provided.name()]);
    }
    match request.compression {
        None => {}
        Some(Compression::None) => {
            command.args(["--compression", "none"]);
        }
        Some(Compression::Lz4 { chunk_kib }) => {
            command.args([
                "--compression",
                "lz4",
                "--chunk-length",
                &format!("{chunk_kib}KiB"),
            ]);
        }
    }
    command.args(["--progress", "none"]);
    program::output(&mut command).with_context(|| format!("{command:?}"))?;
    Ok(())
}

/// Output of our `dump` for a Data.db.
pub fn dump(data: &Path, now_s: i64) -> Result<String> {
    if let Some(binary) = std::env::var_os("COMPACTOR_BIN") {
        let mut command = Command::new(binary);
        command.arg("dump").arg(data);
        return program::output(command.args(["--now", &now_s.to_string()]));
    }
    let io = Io::new(IoOptions::default())?;
    let mut text = Vec::new();
    compactor::dump::dump(&io, data, &DumpOptions::new(now_s), &NoObserver, &mut text)?;
    Ok(String::from_utf8(text)?)
}

/// Output of our `metadata` for a table that keeps no tombstones.
pub fn metadata(data: &Path, now_s: i64) -> Result<String> {
    let io = Io::new(IoOptions::default())?;
    let metadata = compactor::metadata::read(&io, data, &MetadataOptions::new(now_s))?;
    Ok(compactor::metadata::text::render(&metadata))
}

/// Dotted names of the structures that our verification reports as damaged.
pub fn damage(data: &Path) -> Result<Vec<String>> {
    let io = Io::new(IoOptions::default())?;
    let report = compactor::verify::verify(
        &io,
        data,
        &compactor::verify::VerifyOptions::default(),
        &mut NoObserver,
    )?;
    let damage = |finding: &compactor::verify::Finding| {
        (finding.severity == compactor::verify::Severity::Damage)
            .then(|| format!("{} {}", finding.component, finding.structure))
    };
    Ok(report.findings.iter().filter_map(damage).collect())
}
