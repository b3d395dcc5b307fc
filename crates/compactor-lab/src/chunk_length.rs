//! Chunk-length experiment: the same foreground load on the same rows, stored in chunks of several lengths
//! with several compressors, alone and during a compaction.
//!
//! The rows are made once, and each variant is written from them, one SSTable from each; but for the
//! chunks the files are the same to the byte. So are the hot rows, the order in which they are read and
//! the compaction meanwhile, of the SSTables that the variants were written from. What
//! differs is how much of the disk a read of a row needs, how much page cache the hot rows take, and
//! what decompression costs.

mod options;
mod outcome;
mod run;
mod variant;
mod written;

use std::sync::Arc;
use std::time::Duration;

use compactor::{Error, Result};

use crate::arm::Arm;
use crate::caveats::Warnings;
use crate::hot_set::HotSet;
use crate::options::Data;
use crate::outcome::{DataRecord, Experiment, Warning};
use crate::random::Random;
use crate::report::{self, units};
use crate::schedule::Schedule;
use crate::session::Session;
use crate::table::{GENERATING, TABLE_DIRECTORY, Table, require_room};
use crate::warnings::{self, small_hot_set};
use crate::watcher::{Event, Plan, Watcher, watched};
use run::{Bench, settle};
use written::Written;

pub use options::ChunkLengthOptions;
pub use outcome::{
    BackgroundRecord, ChunkLengthOutcome, Reading, Reads, VariantRecord, VariantRun,
};
pub(crate) use run::holds_rate;
pub use variant::{Compressor, Variant};

/// Stream of random numbers of the seed, for the order of runs.
const STREAM: u64 = 0x6368_756e;
/// By how much a variant may be longer than the source: short chunks compress worse.
const ROOM_FOR_WORSE_RATIO: f64 = 1.3;
/// Share of the slowest variant's most at which latencies are compared if no rate is named: queues
/// are short there, and every variant can hold it.
const SHARE_OF_SLOWEST: f64 = 0.5;

/// Measures what reads cost in each of the variants.
///
/// Everything it makes on the disk is below `options.directory` and removed at the end, and so is its
/// cgroup. If the watcher stops it, what was measured until then is returned, with
/// [`End::Interrupted`](crate::outcome::End::Interrupted).
///
/// # Errors
/// Invalid options, no disk space, a failed read or write, or cancellation before the first run's
/// end.
pub fn compare(options: &ChunkLengthOptions, watcher: &dyn Watcher) -> Result<ChunkLengthOutcome> {
    options.check()?;
    let limit = options.memory_limit_bytes;
    let session = Session::begin(&options.directory, "lab", limit, watcher)?;
    let mut warnings = session.warn(warnings::of_machine(&session.environment, limit.is_some()));
    let source = source(options, &session)?;
    let hot = HotSet::of_table(&source, options.hot_set_bytes, options.seed, watcher)?;
    let variants = write_all(options, &source, &hot, &session)?;
    warnings.extend(session.warn(of_variants(
        options,
        &source.record,
        &hot,
        &variants,
        &session,
    )));
    let cgroup = session.enter_cgroup()?;
    let mut bench = Bench {
        options,
        session: &session,
        source: &source,
        hot: Arc::new(hot),
        cgroup: cgroup.as_ref(),
        rate_per_s: options.rate_per_s,
    };
    let mut runs = Vec::new();
    let result = run_all(&mut bench, &variants, &mut runs);
    let (hot, rate_per_s) = (bench.hot, bench.rate_per_s);
    drop(cgroup);
    let memory_limit_bytes = session.limit_bytes;
    let (header, environment) = session.finish(result, !runs.is_empty())?;
    Ok(ChunkLengthOutcome {
        experiment: Experiment::ChunkLength,
        header,
        options: options.clone(),
        environment,
        source: DataRecord {
            partitions: hot.partitions,
            ..source.record
        },
        hot_rows: hot.rows.len() as u64,
        memory_limit_bytes,
        rate_per_s,
        variants: variants.into_iter().map(|v| v.record).collect(),
        runs,
        warnings,
    })
}

/// The rows, as they are before any variant is written of them: a copy of what was given or generated.
fn source(options: &ChunkLengthOptions, session: &Session<'_>) -> Result<Table> {
    let directory = session.directory();
    let bytes = options.data.generated_bytes(options.hot_set_bytes);
    // Source, copy, variants and an output; compressed data takes about half of what it is.
    let needed = bytes.saturating_mul(options.variants().len() as u64 + 3);
    let generated = Table::prepare(
        &options.data,
        (bytes, needed / 2),
        options.seed,
        directory,
        &mut watched(session.watcher, GENERATING, (0, bytes)),
    )?;
    let needed = needed_bytes(&options.variants(), &generated);
    session.note(&format!(
        "at most {} are needed in {}",
        units::bytes(needed as f64),
        directory.display()
    ));
    require_room(directory, needed)?;
    let source = written::copy(&generated, bytes, directory, session.watcher)?;
    if let Data::Generated { .. } = options.data {
        let made = directory.join(TABLE_DIRECTORY);
        compactor_io::remove_dir_all(&made).map_err(Error::file("remove", &made))?;
    }
    Ok(source)
}

/// Most bytes of a copy, all variants and one output of the compaction.
fn needed_bytes(variants: &[Variant], source: &Table) -> u64 {
    let (data, all) = (source.data_file_bytes(), source.record.bytes);
    let plain = source.record.uncompressed_bytes;
    let of = |variant: &Variant| match variant.compressor {
        Compressor::Noop | Compressor::None => plain + plain / 64,
        _ => ((data as f64 * ROOM_FOR_WORSE_RATIO) as u64).min(plain + plain / 64),
    };
    let others = all.saturating_sub(data);
    let variants: u64 = variants.iter().map(|variant| of(variant) + others).sum();
    variants + 2 * all
}

fn write_all(
    options: &ChunkLengthOptions,
    source: &Table,
    hot: &HotSet,
    session: &Session<'_>,
) -> Result<Vec<Written>> {
    let memory = (session.environment.page_bytes, session.room_bytes());
    let write = |variant: Variant| {
        let (directory, watcher) = (session.directory(), session.watcher);
        let written = written::write(source, variant, hot, memory, directory, watcher)?;
        session.note(&format!(
            "{variant}: {} of Data.db, hot rows on {} of pages, {:.0}% of the memory they may take",
            units::bytes(written.record.data_file_bytes as f64),
            units::bytes(written.record.hot_bytes as f64),
            100.0 * written.record.pressure
        ));
        Ok(written)
    };
    let written: Vec<Written> = options
        .variants()
        .into_iter()
        .map(write)
        .collect::<Result<_>>()?;
    let rows = |written: &Written| (written.record.rows, written.record.partitions);
    if let Some(other) = written.iter().find(|w| rows(w) != rows(&written[0])) {
        return Err(compactor::Error::Internal(format!(
            "{} has other rows than {}",
            other.record.variant, written[0].record.variant
        )));
    }
    Ok(written)
}

/// Caveats about the comparison before anything was read.
fn of_variants(
    options: &ChunkLengthOptions,
    source: &DataRecord,
    hot: &HotSet,
    variants: &[Written],
    session: &Session<'_>,
) -> Vec<Warning> {
    let mut found = Warnings::default();
    let room = session.room_bytes();
    let hot_bytes = hot.page_count() * session.environment.page_bytes;
    small_hot_set(&mut found, hot_bytes, options.hot_set_bytes);
    let (fit, others): (Vec<_>, Vec<_>) = variants.iter().partition(|v| v.record.hot_bytes < room);
    let names = |variants: &[&Written]| {
        let names = variants.iter().map(|v| v.record.variant.to_string());
        names.collect::<Vec<_>>().join(", ")
    };
    let room = units::bytes(room as f64);
    found.when(others.is_empty(), "everything_fits", || {
        format!(
            "the hot rows of every variant fit into {room}: once they are there the disk is not read, and \
             variants differ in decompression alone; use more hot rows or a lower --memory-limit"
        )
    });
    let some_fit = !others.is_empty() && !fit.is_empty();
    found.when(some_fit, "some_fit", || {
        format!(
            "the same hot rows take more page cache the longer chunks are: they fit into {room} as {}, and \
             not as {}; part of the difference is how much of them is cached",
            names(&fit),
            names(&others)
        )
    });
    found.when(source.shape != "given", "generated_values", || {
        "the values are generated, and repeat what a short chunk has seen as well: their compression ratio \
         depends less on the chunk length than that of most real data; use your own table for its ratio"
            .to_owned()
    });
    found.0
}

/// Runs all variants in all repeats. What was measured is in `runs`, however it ends.
fn run_all(bench: &mut Bench<'_>, variants: &[Written], runs: &mut Vec<VariantRun>) -> Result<()> {
    let (options, session) = (bench.options, bench.session);
    let names = variants.iter().map(|v| v.record.variant.to_string());
    let mut schedule = Schedule::new(names.collect(), 1, (options.warm_ups, options.repeats));
    let one = |variant: usize, plan: Plan| {
        if !plan.warm_up && bench.rate_per_s.is_none() {
            bench.rate_per_s = common_rate(runs);
            if let Some(rate) = bench.rate_per_s {
                session.note(&format!("latencies are compared at {rate:.0} reads/s"));
            }
        }
        session.watcher.event(&Event::RunStarted(&plan));
        let run = bench.run(&variants[variant], &plan)?;
        let measured = report::chunk_length::measured(&run);
        session.watcher.event(&Event::RunEnded(&measured));
        runs.push(run);
        Ok(())
    };
    let mut random = Random::new(options.seed, STREAM);
    schedule.run(&mut random, |repeat| planned(options, repeat), None, one)
}

/// Duration of a run of a repeat by the options, without dropping caches and cleaning. A
/// warm-up whose rate is not known yet measures nothing at it.
fn planned(options: &ChunkLengthOptions, repeat: u32) -> Duration {
    let at_rate = options.rate_per_s.is_some() || repeat >= options.warm_ups;
    let compacts = options.compaction != Arm::Idle;
    let measurements = (1 + u32::from(compacts)) * (1 + u32::from(at_rate));
    options.warm + (settle(options.measure) + options.measure) * measurements
}

/// A rate that every variant can hold, alone and during a compaction: by the warm-ups.
fn common_rate(runs: &[VariantRun]) -> Option<f64> {
    let conditions = runs
        .iter()
        .flat_map(|run| std::iter::once(&run.alone).chain(&run.compacting));
    let rates = conditions.map(|reads| reads.peak.latency.achieved_per_s);
    let slowest = rates.min_by(f64::total_cmp)?;
    Some((slowest * SHARE_OF_SLOWEST).floor().max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warm_ups_measure_less() {
        let options = ChunkLengthOptions::new("/nowhere");
        let (warm, one) = (options.warm, run::SETTLE + options.measure);
        assert_eq!(planned(&options, 0), warm + 2 * one);
        assert_eq!(planned(&options, 1), warm + 4 * one);
        let mut named = options;
        named.rate_per_s = Some(1.0);
        assert_eq!(planned(&named, 0), warm + 4 * one);
    }
}
