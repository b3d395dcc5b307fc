//! Merges of ranges by several threads: output, counts and events are the same as with one thread, to the
//! byte.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use compactor_engine::input::Scan;
use compactor_engine::job::{
    MergeJob, MergeOptions, MergeOutcome, OutputCompression, OutputSplit, Scope, publish,
};
use compactor_engine::merge::{InputRead, Observer};
use compactor_engine::read::{DataTrace, InputTrace, TraceBatch};
use compactor_engine::{Error, Result};
use compactor_io::ReadMode;
use compactor_sstable::Component;
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::info::CompressionParams;
use compactor_sstable::descriptor::Descriptor;
use compactor_testkit::machine::disk_directory;

use crate::files::{
    contents, io, key_value_schema, key_value_source, key_value_sstables, merge_files, options,
    write_sstable,
};
use compactor_testkit::campaign;
use compactor_testkit::model::case::{Case, PurgePlan};
use compactor_testkit::model::choices::{Choices, check};
use compactor_testkit::model::decode::decode;
use compactor_testkit::model::table::Table;

/// Events of an input's trace, line by line.
type Told = Arc<Mutex<BTreeMap<PathBuf, Vec<String>>>>;

/// Observer that records all events.
#[derive(Default)]
struct Notes {
    told: Told,
    reads: Vec<InputRead>,
    last_progress: (u64, u64, u64),
}

#[derive(Debug)]
struct NotingTrace {
    path: PathBuf,
    told: Told,
}

impl NotingTrace {
    fn note(&self, line: String) {
        let mut told = self.told.lock().unwrap();
        told.entry(self.path.clone()).or_default().push(line);
    }
}

impl InputTrace for NotingTrace {
    fn of_part(&mut self, _positions: Range<u64>) -> Option<Box<dyn DataTrace>> {
        None
    }

    fn batch(&mut self, batch: TraceBatch) {
        for (name, event) in batch.events() {
            self.note(format!("{name:?} {event:?}"));
        }
    }

    fn end(&mut self) {
        self.note("all".to_owned());
    }
}

impl Observer for Notes {
    fn is_cancelled(&self) -> bool {
        false
    }

    fn progress(&mut self, read_bytes: u64, rows: u64, partitions: u64) {
        self.last_progress = (read_bytes, rows, partitions);
    }

    fn trace(&mut self, data_path: &Path) -> Option<Box<dyn InputTrace>> {
        Some(Box::new(NotingTrace {
            path: data_path.to_owned(),
            told: Arc::clone(&self.told),
        }))
    }

    fn inputs_read(&mut self, inputs: &[InputRead]) -> Result<()> {
        self.reads = inputs.to_vec();
        Ok(())
    }
}

/// Runs a merge; returns its outcome, its events, and its files, which are then deleted.
fn run(options: &MergeOptions) -> Result<(MergeOutcome, Notes, Files)> {
    let mut notes = Notes::default();
    let staged = MergeJob::open(io(), options.clone())?.stage(&mut notes)?;
    let outcome = publish(vec![staged])?.pop().unwrap();
    let files = contents(&options.output_directory);
    let _ = std::fs::remove_dir_all(&options.output_directory);
    notes.reads.sort_by(|a, b| a.data_path.cmp(&b.data_path));
    Ok((outcome, notes, files))
}

type Files = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// Merges in ranges of `bytes` bytes, and compares with the result of one thread. Returns the number of
/// ranges.
fn same_in_ranges(options: &MergeOptions, threads: usize, bytes: u64) -> Result<usize, String> {
    let (ranges, unsplit_reason) = same_if_split(options, threads, bytes)?;
    match unsplit_reason {
        None => Ok(ranges),
        Some(why) => Err(format!("not split: {why}")),
    }
}

/// As [`same_in_ranges`], but also returns why the merge was not split.
fn same_if_split(
    options: &MergeOptions,
    threads: usize,
    bytes: u64,
) -> Result<(usize, Option<&'static str>), String> {
    let text = |e: Error| e.to_string();
    let mut options = options.clone();
    options.threads = 1;
    let (whole, whole_notes, expected) = run(&options).map_err(text)?;
    options.threads = threads;
    options.range_bytes = Some(bytes);
    let (outcome, notes, files) = run(&options).map_err(text)?;
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    if names(&files) != names(&expected) {
        return Err(format!("{:?}\n{:?}", names(&files), names(&expected)));
    }
    for (name, bytes) in &expected {
        if files[name] != *bytes {
            return Err(format!(
                "{} differs in {} ranges",
                name.display(),
                outcome.ranges
            ));
        }
    }
    let counts = (
        format!("{:?}", outcome.counts),
        format!("{:?}", whole.counts),
    );
    if counts.0 != counts.1 {
        return Err(format!("{}\n{}", counts.0, counts.1));
    }
    if notes.reads != whole_notes.reads {
        return Err(format!("{:?}\n{:?}", notes.reads, whole_notes.reads));
    }
    if notes.last_progress != whole_notes.last_progress {
        let (a, b) = (notes.last_progress, whole_notes.last_progress);
        return Err(format!("progress {a:?} {b:?}"));
    }
    let (told, whole_told) = (notes.told.lock().unwrap(), whole_notes.told.lock().unwrap());
    if *told != *whole_told {
        return Err(format!("{told:?}\n{whole_told:?}"));
    }
    Ok((outcome.ranges, outcome.unsplit_reason))
}

/// Random tables of random schemas in every version, with all kinds of compression and purging.
#[test]
fn ranges_do_not_change_a_byte() {
    let directory = disk_directory();
    let ranges = Mutex::new((0, 0));
    let verify = |case: &Case| {
        let inputs = tempfile::tempdir_in(directory.path()).unwrap();
        let output = inputs.path().join("output");
        let mut choices = Choices::from_seed(case.sources.len() as u64);
        let mut paths = Vec::new();
        for (id, source) in (1..).zip(&case.sources) {
            let lengths = [4096, 16_384];
            let params = CompressionParams::new(Codec::Lz4, choices.pick(&lengths));
            let compression = choices.chance(60).then_some(params);
            let path = write_sstable(inputs.path(), id, &case.schema, source, compression);
            paths.extend(path);
        }
        if paths.is_empty() {
            return Ok(());
        }
        let mut options = options(&paths, &output);
        options.now_s = case.settings.now_s;
        options.column_index_size = Some(case.settings.column_index_size);
        options.compression = if choices.chance(50) {
            OutputCompression::Params(CompressionParams::new(Codec::Lz4, 4096))
        } else {
            OutputCompression::None
        };
        options.version = Some(case.settings.output.version);
        options.min_index_interval = choices.pick(&[1, 3, 128]);
        if let PurgePlan::All = case.purge {
            options.scope = Scope::Complete;
            options.gc_before_s = Some(case.settings.gc_before_s);
        }
        for (threads, bytes, memory_bytes) in [(2, 1, 8 << 20), (4, 700, 16 << 20)] {
            options.memory_bytes = memory_bytes;
            let (found, unsplit_reason) = same_if_split(&options, threads, bytes)?;
            // If clusterings or paths compare equal but differ in their bytes, the order of all partitions
            // matters.
            if let Some(why) = unsplit_reason {
                if case.schema.has_several_encodings() && why.contains("differ in their bytes") {
                    continue;
                } else {
                    return Err(format!("not split: {why}"));
                }
            }
            let mut ranges = ranges.lock().unwrap();
            ranges.0 += 1;
            ranges.1 += found;
        }
        Ok(())
    };
    let generate = |choices: &mut Choices| {
        let mut case = compactor_testkit::model::case::moderate_case(choices, 4);
        if let PurgePlan::EvenBefore(_) = case.purge {
            case.purge = PurgePlan::Nothing;
        }
        case
    };
    check("ranges", 60, generate, verify, Case::simpler);
    let (merges, ranges) = *ranges.lock().unwrap();
    // A few merges may have few ranges.
    let per_merge = if campaign::cases(60) < 15 { 1 } else { 2 };
    assert!(
        ranges > per_merge * merges,
        "{ranges} ranges in {merges} merges"
    );
}

/// Many partitions, so that split points are found by the summary; inputs without data in most ranges; and
/// rows longer than a block, a chunk and the limit of buffered output.
#[test]
fn ranges_of_many_partitions_do_not_change_a_byte() {
    let directory = disk_directory();
    let inputs = directory.path().join("inputs");
    let output = directory.path().join("output");
    let paths = key_value_sstables(&inputs, 6000, 300);
    let mut options = options(&paths, &output);
    for (threads, bytes, memory_bytes) in [
        // The output of the second range must wait for room.
        (2, 1_000_000, 4 << 20),
        (3, 10_000, 8 << 20),
        (8, 200_000, 16 << 20),
    ] {
        options.memory_bytes = memory_bytes;
        options.compression = match threads {
            2 => OutputCompression::None,
            _ => OutputCompression::AsNewestInput,
        };
        let ranges = same_in_ranges(&options, threads, bytes).unwrap();
        assert!(ranges > 1, "{ranges}");
    }
    // Without a summary, the whole index is read to find split points.
    let summary = contents(&inputs)
        .into_keys()
        .find(|name| name.to_string_lossy().ends_with("-2-big-Summary.db"))
        .unwrap();
    std::fs::remove_file(inputs.join(&summary)).unwrap();
    let toc = inputs.join(summary.to_str().unwrap().replace("Summary.db", "TOC.txt"));
    let listed = std::fs::read_to_string(&toc).unwrap();
    std::fs::write(&toc, listed.replace("Summary.db\n", "")).unwrap();
    let ranges = same_in_ranges(&options, 3, 10_000).unwrap();
    assert!(ranges > 1, "{ranges}");

    let schema = key_value_schema();
    let long = |id: u32, keys, value_len| {
        let source = key_value_source(u64::from(id), keys, value_len);
        let compression = CompressionParams::new(Codec::Lz4, 4096);
        write_sstable(&inputs, id, &schema, &source, Some(compression)).unwrap()
    };
    let mut paths = vec![long(11, 0..40, 300_000), long(12, 30..31, 900_000)];
    paths.push(long(13, 50..400, 100));
    let mut options = options_of(&paths, &output);
    options.memory_bytes = 8 << 20;
    let ranges = same_in_ranges(&options, 4, 200_000).unwrap();
    assert!(ranges > 10, "{ranges}");
}

fn options_of(paths: &[PathBuf], output: &Path) -> MergeOptions {
    let mut options = options(paths, output);
    options.compression = OutputCompression::None;
    options
}

/// Too little data to be split, or no split point.
#[test]
fn unsplittable_merges_are_one_range() {
    let directory = disk_directory();
    let output = directory.path().join("output");
    let paths = key_value_sstables(&directory.path().join("inputs"), 600, 300);
    let mut options = options(&paths, &output);
    options.threads = 4;
    let ranges = |options: &MergeOptions| {
        let (outcome, _, _) = run(options).unwrap();
        assert_eq!(outcome.unsplit_reason, None);
        outcome.ranges
    };
    options.range_bytes = Some(1 << 30);
    assert_eq!(ranges(&options), 1);
    options.range_bytes = Some(10_000);
    options.memory_bytes = 100 << 10;
    assert_eq!(ranges(&options), 1);
    options.memory_bytes = 16 << 20;
    options.threads = 1;
    assert_eq!(ranges(&options), 1);
    options.threads = 2;
    assert!(ranges(&options) > 4);
}

/// Any number of threads and any memory, also if inputs are merged in passes.
#[test]
fn outputs_do_not_depend_on_threads_or_memory() {
    let directory = disk_directory();
    let output = directory.path().join("output");
    let paths = key_value_sstables(&directory.path().join("inputs"), 3000, 300);
    let plain = options(&paths, &output);
    let outputs = |count| OutputSplit::Count(NonZeroUsize::new(count).unwrap());
    let cases: [(&str, MergeOptions); 7] = [
        ("one output", plain.clone()),
        (
            "three outputs",
            MergeOptions {
                split: outputs(3),
                ..plain.clone()
            },
        ),
        (
            "outputs up to tokens",
            MergeOptions {
                split: OutputSplit::Tokens(vec![i64::MIN, -(1 << 62), 5, 6, 1 << 62]),
                ..plain.clone()
            },
        ),
        (
            "a greatest size",
            MergeOptions {
                split: OutputSplit::MaxBytes(150_000),
                ..plain.clone()
            },
        ),
        (
            "a small one",
            MergeOptions {
                split: OutputSplit::MaxBytes(9_000),
                ..plain.clone()
            },
        ),
        (
            "a greatest size, not compressed",
            MergeOptions {
                split: OutputSplit::MaxBytes(333_333),
                compression: OutputCompression::None,
                ..plain.clone()
            },
        ),
        (
            "passes",
            MergeOptions {
                open_files: Some(0),
                split: outputs(2),
                ..plain.clone()
            },
        ),
    ];
    let settings = campaign::some_of([
        (3, 1 << 20, 1000),
        (1, 16 << 20, 50_000),
        (2, 64 << 20, 20_000),
        (2, 200 << 10, 70_000),
        (8, 16 << 20, 3000),
    ]);
    for (name, mut options) in cases {
        options.threads = 1;
        let (whole, _, expected) = run(&options).unwrap();
        assert_eq!(whole.passes > 1, name == "passes");
        assert_eq!(whole.outputs.len() > 1, name != "one output", "{name}");
        for &(threads, memory_bytes, bytes) in &settings {
            (options.threads, options.memory_bytes) = (threads, memory_bytes);
            options.range_bytes = Some(bytes);
            let (outcome, _, found) = run(&options).unwrap();
            let is_same = found == expected;
            assert!(
                is_same,
                "{name}, {threads} threads, {} ranges",
                outcome.ranges
            );
            let counts = |outcome: &MergeOutcome| format!("{:?}", outcome.counts);
            assert_eq!(counts(&outcome), counts(&whole), "{name}");
        }
    }
}

fn table(data: &Path) -> Table {
    let mut scan = Scan::open(&io(), data, ReadMode::Buffered).unwrap();
    decode(&key_value_schema(), scan.cursor()).unwrap()
}

/// The requested number of outputs, consecutive in ring order and of similar length; their rows are those of
/// a single output.
#[test]
fn the_requested_number_of_outputs() {
    let directory = disk_directory();
    let output = directory.path().join("output");
    let paths = key_value_sstables(&directory.path().join("inputs"), 3000, 300);
    let mut options = options(&paths, &output);
    let data = |outcome: &MergeOutcome| -> Vec<PathBuf> {
        let outputs = outcome.outputs.iter();
        outputs
            .map(|o| o.descriptor.path(Component::Data))
            .collect()
    };
    let whole = merge_files(&io(), options.clone()).unwrap();
    let expected = table(&data(&whole)[0]);
    std::fs::remove_dir_all(&output).unwrap();
    options.range_bytes = Some(40_000);
    options.memory_bytes = 16 << 20;
    for outputs in [2usize, 3, 5] {
        options.split = OutputSplit::Count(NonZeroUsize::new(outputs).unwrap());
        let outcome = merge_files(&io(), options.clone()).unwrap();
        assert_eq!(outcome.outputs.len(), outputs);
        assert!(outcome.ranges >= outputs, "{}", outcome.ranges);
        let mut together = Table::new();
        for (number, path) in data(&outcome).iter().enumerate() {
            let part = table(path);
            if let (Some((before, _)), Some((first, _))) =
                (together.last_key_value(), part.first_key_value())
            {
                assert!(before < first, "output {number}");
            }
            let fair = expected.len() / outputs;
            assert!(
                part.len() > fair / 2 && part.len() < 2 * fair,
                "{}",
                part.len()
            );
            together.extend(part);
            let filter = path.to_str().unwrap().replace("Data.db", "Filter.db");
            let filter_len = std::fs::metadata(filter).unwrap().len() as usize;
            // About ten bits per key.
            assert!(filter_len < 3 * fair, "{filter_len} bytes for {fair} keys");
        }
        assert!(together == expected);
        std::fs::remove_dir_all(&output).unwrap();
    }
}

/// Cancels after this number of calls.
struct Impatient(std::cell::Cell<usize>);

impl Observer for Impatient {
    fn is_cancelled(&self) -> bool {
        self.0.set(self.0.get().saturating_sub(1));
        self.0.get() == 0
    }

    fn progress(&mut self, _read_bytes: u64, _rows: u64, _partitions: u64) {}
}

#[test]
fn an_interrupted_merge_leaves_nothing() {
    let directory = disk_directory();
    let output = directory.path().join("output");
    let paths = key_value_sstables(&directory.path().join("inputs"), 3000, 300);
    let mut options = options(&paths, &output);
    options.threads = 3;
    options.range_bytes = Some(20_000);
    options.memory_bytes = 8 << 20;
    for questions in [1, 2] {
        let job = MergeJob::open(io(), options.clone()).unwrap();
        let result = job.run(&mut Impatient(std::cell::Cell::new(questions)));
        assert!(matches!(result, Err(Error::Cancelled)), "{result:?}");
        assert!(!output.exists(), "{:?}", contents(&output).keys());
    }
}

/// Damages every byte of the files by which ranges are split. A merge reports the damage or, if it does not
/// use the index, writes the same output as without it.
#[test]
fn a_damaged_index_is_found_or_does_not_matter() {
    let directory = disk_directory();
    let output = directory.path().join("output");
    let schema = key_value_schema();
    let inputs = directory.path().join("inputs");
    let mut paths = Vec::new();
    for id in [1, 2] {
        let keys = 10 * id..10 * id + 30;
        let source = key_value_source(id as u64, keys, 60);
        paths.extend(write_sstable(&inputs, id as u32, &schema, &source, None));
    }
    let mut options = options(&paths, &output);
    let (_, _, expected) = run(&options).unwrap();
    options.threads = 2;
    options.range_bytes = Some(300);
    options.memory_bytes = 8 << 20;
    let descriptor = Descriptor::parse(&paths[0]).unwrap().descriptor;
    let (mut found, mut harmless) = (0, 0);
    for component in [Component::Index, Component::Summary] {
        let path = descriptor.path(component);
        let intact = std::fs::read(&path).unwrap();
        let step = (intact.len() / campaign::cases(120)).max(1);
        for at in (0..intact.len()).step_by(step) {
            let mut bytes = intact.clone();
            bytes[at] ^= 1 << (at % 8);
            std::fs::write(&path, bytes).unwrap();
            match run(&options) {
                Err(Error::Format(error)) => {
                    found += 1;
                    assert!(!output.exists(), "{error}");
                }
                Err(other) => panic!("{component:?} at {at}: {other}"),
                Ok((_, _, files)) => {
                    harmless += 1;
                    assert!(files == expected, "{component:?} at {at}");
                }
            }
        }
        std::fs::write(&path, &intact).unwrap();
    }
    let least = if campaign::cases(120) < 30 { 3 } else { 10 };
    assert!(
        found > least && harmless > least,
        "{found} found, {harmless} harmless"
    );
}

/// Damage in the data of a range.
#[test]
fn damaged_data_is_found_in_any_range() {
    let directory = disk_directory();
    let output = directory.path().join("output");
    let paths = key_value_sstables(&directory.path().join("inputs"), 900, 300);
    let mut options = options(&paths, &output);
    options.threads = 3;
    options.range_bytes = Some(20_000);
    options.memory_bytes = 8 << 20;
    let intact = std::fs::read(&paths[0]).unwrap();
    for part in 0..20 {
        let mut bytes = intact.clone();
        let at = part * (intact.len() - 1) / 19;
        bytes[at] ^= 0x10;
        std::fs::write(&paths[0], bytes).unwrap();
        let error = run(&options).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::Format(_)), "at {at}: {error}");
        assert!(!output.exists());
    }
}
