//! Second pass: merges the salvaged data into the output, without purging.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use compactor_engine::input::column_map;
use compactor_engine::job::{Budget, Demands, MergeOptions, OutsideSstables, decide_settings};
use compactor_engine::merge::{InputFacts, MergeInput, Observer, PartitionMerger};
use compactor_engine::publish::{OutputClaim, Replaceable, Staging};
use compactor_engine::read::{Cursor, Workers};
use compactor_engine::write::{
    OutputBlocks, SstableSettings, SstableWriter, WriteSettings, WrittenSstable,
};
use compactor_io::Io;
use compactor_sstable::statistics::CollectorSettings;

use super::splice::{Piece, Spliced};
use super::stored::Stored;
use super::{PARTITIONER, ScrubOptions, ScrubReport};
use crate::Result;
use crate::sstable_report::SstableReport;
use crate::verify::chunks::CheckedData;
use crate::verify::finding::Findings;

/// Time of the merge, at which nothing has expired: expiring data is copied as it is.
const NEVER: i64 = i64::MIN;

/// Writes the runs as one SSTable; `None` if they are empty.
pub(super) fn write(
    io: &Io,
    stored: &Stored,
    runs: Vec<Vec<Piece>>,
    report: &ScrubReport,
    options: &ScrubOptions,
    observer: &mut dyn Observer,
) -> Result<Option<SstableReport>> {
    let partitions = report.partitions_good + report.partitions_cut;
    if partitions == 0 {
        return Ok(None);
    }
    let mut settings = settings(stored, report, options)?;
    settings.expected_keys = partitions;
    let workers = Workers::start(options.output.threads)?;
    let cancelled = Arc::new(AtomicBool::new(false));
    let output = &options.output;
    let unit = |info: Option<u32>| info.map_or(0, |len| len as usize);
    let budget = Budget::divide(&Demands {
        memory_bytes: output.memory_bytes,
        inputs: runs.len(),
        // No processors: there is one range, and threads only compress.
        threads: output.threads,
        readahead_bytes: output.readahead_bytes,
        input_unit: unit(stored.chunks().map(|i| i.params.chunk_len)),
        output_unit: unit(settings.compression.as_ref().map(|c| c.chunk_len)),
        ..Demands::default()
    });
    let write = WriteSettings {
        mode: output.write_mode,
        buffer_bytes: budget.write_buffer_bytes,
        blocks: Arc::new(OutputBlocks::new(budget.output_blocks)),
        expected_len: Some(stored.file.len()),
        queue: workers.queue(),
        cancelled: Arc::clone(&cancelled),
    };
    let written = merge(io, stored, runs, output, settings, &write, observer);
    // Tasks still queued after a failure are obsolete.
    cancelled.store(written.is_err(), Ordering::Relaxed);
    drop(workers);
    Ok(written?.as_ref().map(SstableReport::of_output))
}

/// Settings of a merge of this one SSTable. If data was lost, the output is unrepaired (`SortedTableScrubber.scrub`).
/// It is in no repair session either, since the end of the session would mark it as repaired, and it has no commit log
/// intervals (`CompactionManager.createWriter`), since a node that still has the lost writes in its commit log replays
/// only those that no SSTable has.
fn settings(
    stored: &Stored,
    report: &ScrubReport,
    options: &ScrubOptions,
) -> Result<SstableSettings> {
    let stats = &stored.input.statistics.stats;
    let mut inherited = CollectorSettings::merge(&[stats])?;
    inherited.level = stats.level;
    if report.is_lossy() {
        inherited = CollectorSettings {
            level: inherited.level,
            originating_host_id: inherited.originating_host_id,
            ..CollectorSettings::default()
        };
    }
    decide_settings(
        &options.output,
        std::slice::from_ref(&stored.input),
        inherited,
    )
}

fn merge(
    io: &Io,
    stored: &Stored,
    runs: Vec<Vec<Piece>>,
    output: &MergeOptions,
    settings: SstableSettings,
    write: &WriteSettings,
    observer: &mut dyn Observer,
) -> Result<Option<WrittenSstable>> {
    let claim = match &output.claim {
        Some(claim) => Arc::clone(claim),
        None => {
            let inputs = [stored.data_path()];
            let replaceable = Replaceable::of_inputs(&inputs);
            OutputClaim::take(
                &output.output_directory,
                output.existing_output,
                replaceable,
            )?
        }
    };
    let staging = Staging::create(&claim)?;
    let (sstable, partitions) = SstableWriter::create(io, staging, settings, PARTITIONER, write)?;
    let layout = Arc::clone(sstable.layout());
    // The first pass has reported everything.
    let unheard = Findings::new(stored.input.descriptor.clone(), 0);
    let mut inputs = Vec::with_capacity(runs.len());
    for pieces in runs {
        let data = CheckedData::new(&unheard, stored.file.clone(), stored.form());
        let source = Spliced::new(data, pieces);
        let path = stored.data_path();
        let cursor = Cursor::new(source, Arc::clone(&stored.layout), PARTITIONER, path);
        let map = column_map(&stored.layout, &layout)?;
        inputs.push(MergeInput::new(
            cursor,
            InputFacts::new(map, i64::MAX),
            &layout,
        ));
    }
    let merger = PartitionMerger::new(inputs, partitions, layout, NEVER, NEVER);
    let (partitions, _) = merger.run(&OutsideSstables::Unknown, observer)?;
    let written = sstable.finish(partitions, |path| observer.before_publish(path))?;
    claim.commit()?;
    Ok(written)
}
