//! Report of a bench.

use serde_json::{Value, json};

use super::document::{Block, Facts, Section, Table};
use super::units::{bytes, milliseconds};
use super::{Point, Report, bars, facts, texts, with_values};
use crate::bench::{ArmKind, ArmOutcome, BenchOutcome, BenchRun, Work};
use crate::comparison::{Comparison, Measured};
use crate::experiment::Experiment;
use crate::figure::{Figure, Unit};
use crate::report::arm_table::Column;

/// Wall clock time.
const WALL: Figure = Figure::lower("wall_s", "wall s", Unit::Number);
/// Uncompressed bytes of the inputs per second.
const THROUGHPUT: Figure = Figure::new("uncompressed_bytes_per_s", "MB/s", Unit::Megabytes);
/// Processor time.
const CPU: Figure = Figure::lower("cpu_s", "CPU s", Unit::Number);
/// Largest resident set.
const PEAK_RSS: Figure = Figure::lower("peak_rss_bytes", "peak MiB", Unit::Mebibytes);

/// Short names of the arms that others are compared with.
const FIRST: &str = "first";
const CODEC: &str = "codec";

static EXPERIMENT: Experiment = Experiment {
    title: "Bench",
    heading: "Speed of a merge",
    introduction: "A merge in comparison with a plain copy of the same files, the codec alone, and Cassandra.",
    arm: "arm",
    headline: WALL,
    baseline: FIRST,
};

/// The report of an outcome.
pub fn report(outcome: &BenchOutcome) -> Report {
    let comparison = compare(outcome);
    let mut blocks = vec![
        Block::Caveats("About these numbers", caveats(outcome, &comparison)),
        Block::Table(table(outcome, &comparison)),
    ];
    blocks.extend(bars::figure(&comparison, &[(WALL, FIRST), (WALL, CODEC)]));
    blocks.extend(notes(outcome));
    let section = Section {
        facts: facts(outcome),
        blocks,
        ..Section::default()
    };
    let circumstances = json!({});
    let (end, points) = (outcome.header.end, [(circumstances, comparison)]);
    Report {
        is_sound: outcome.is_sound(),
        ..Report::new(&EXPERIMENT, end, points, &outcome.warnings, section)
    }
}

/// An outcome with the figures of its arms and the caveats about them, as JSON; `report` is its report.
///
/// # Errors
/// None that an outcome has.
pub fn with_figures(outcome: &BenchOutcome, report: &Report) -> serde_json::Result<Value> {
    let mut json = serde_json::to_value(outcome)?;
    for Point { comparison, .. } in &report.points {
        json["figures"] = serde_json::to_value(&comparison.arms)?;
        json["caveats"] = serde_json::to_value(&comparison.caveats)?;
    }
    Ok(json)
}

/// Compares the arms.
fn compare(outcome: &BenchOutcome) -> Comparison {
    let runs = outcome.arms.iter();
    let bytes = outcome.data.uncompressed_bytes;
    let runs = runs.flat_map(|arm| arm.runs.iter().map(move |run| measured(arm, run, bytes)));
    let first = outcome.arms.first().map(|arm| (FIRST, arm.name.clone()));
    let codec = outcome
        .arms
        .iter()
        .find(|arm| arm.kind == ArmKind::Ours(Work::Codec));
    let codec = codec.map(|arm| (CODEC, arm.name.clone()));
    let arms = outcome.arms.iter().map(|arm| arm.name.clone());
    let baselines = first.into_iter().chain(codec);
    Comparison::new(&EXPERIMENT, arms, baselines, outcome.options.seed, runs)
}

/// A run with its figures.
pub(crate) fn measured(arm: &ArmOutcome, run: &BenchRun, uncompressed_bytes: u64) -> Measured {
    let bytes_per_s = uncompressed_bytes as f64 / run.wall_s.max(1e-9);
    Measured {
        arm: arm.name.clone(),
        attempt: run.attempt.clone(),
        figures: with_values([
            (WALL, Some(run.wall_s)),
            (THROUGHPUT, Some(bytes_per_s)),
            (CPU, Some(run.cpu_s)),
            (PEAK_RSS, run.peak_rss_bytes.map(|bytes| bytes as f64)),
        ]),
    }
}

fn table(outcome: &BenchOutcome, comparison: &Comparison) -> Table {
    let mut table = comparison.table(
        "Medians; MB/s of uncompressed input; time as a multiple of the first arm's and of the codec's in the \
         same repeat, with 95% intervals",
        &[
            Column::Runs,
            Column::Median(WALL),
            Column::Range(WALL),
            Column::Median(THROUGHPUT),
            Column::Median(CPU),
            Column::Median(PEAK_RSS),
            Column::Ratio(WALL, FIRST),
            Column::Ratio(WALL, CODEC),
        ],
    );
    for (row, arm) in table.rows.iter_mut().zip(&outcome.arms) {
        if !arm.is_sound() {
            row[0].push_str(" !");
        }
    }
    table
}

/// Failures and deviations of arms, and reasons not to trust the numbers.
fn caveats(outcome: &BenchOutcome, comparison: &Comparison) -> Vec<String> {
    let failures = outcome.arms.iter().filter_map(|arm| {
        let reason = arm.failure.as_ref()?;
        Some(format!("{} failed: {reason}", arm.name))
    });
    // The output of an external command is examined once, after its first run.
    let warm_ups = outcome.arms.iter().flat_map(|arm| {
        let runs = arm.runs.iter().filter(|run| run.attempt.warm_up);
        let warnings = runs.flat_map(|run| &run.attempt.warnings);
        warnings.map(|warning| format!("{} warm-up: {}", arm.name, warning.text))
    });
    let others = [texts(&comparison.caveats), texts(&outcome.warnings)];
    failures
        .chain(warm_ups)
        .chain(others.into_iter().flatten())
        .collect()
}

fn facts(outcome: &BenchOutcome) -> Facts {
    let options = &outcome.options;
    let (header, command) = (&outcome.header, options.command.as_deref());
    let own = [
        facts::of_record("inputs", &outcome.data, &[]),
        // Equal after every merge of ours that is not marked.
        facts::of_record("output", &outcome.output, &[]),
        facts::of_record("options", options, &["command"]),
    ];
    facts::of_experiment(header, command, own, &outcome.environment)
}

/// Notes on the arms.
fn notes(outcome: &BenchOutcome) -> Vec<Block> {
    let of_arm = |arm: &ArmOutcome| {
        let last = arm.runs.last();
        // Modes that `auto` selected.
        let used = last.and_then(|run| run.io);
        let used = used.filter(|_| arm.io.is_some() && used != arm.io);
        let codec = last.and_then(|run| run.codec);
        let codec = codec.filter(|_| arm.kind == ArmKind::Ours(Work::Codec));
        let codec = codec.map(|times| {
            format!(
                "by a sample of {} in memory, {} ms to decompress and {} ms to compress it on all threads, \
                 checksums included, medians of {} passes; scaled to {} in and {} out",
                bytes(times.sample_bytes as f64),
                milliseconds(times.decompress_s * 1e9),
                milliseconds(times.compress_s * 1e9),
                times.passes,
                bytes(outcome.data.uncompressed_bytes as f64),
                bytes(outcome.output.uncompressed_bytes as f64),
            )
        });
        let notes = used.map(|used| format!("it used {used}")).into_iter();
        let notes = notes.chain(arm.notes.iter().cloned()).chain(codec);
        let named = notes.map(|note| Block::Paragraph(format!("{}: {note}", arm.name)));
        named.collect::<Vec<_>>()
    };
    outcome.arms.iter().flat_map(of_arm).collect()
}

#[cfg(test)]
mod tests {
    use compactor::generate::{GenerateOptions, Shape};
    use compactor_sstable::compression::info::CompressionParams;

    use ArmKind::{External, Ours};

    use super::*;
    use crate::bench::{BenchOptions, CodecTimes, Compression, OutputFacts};
    use crate::outcome::{Attempt, DataRecord, End, OutcomeHeader, Warning};

    /// Three repeats after a warm-up, each twice as slow as the one before; an arm that failed.
    fn outcome() -> BenchOutcome {
        let times = CodecTimes {
            sample_bytes: 1 << 20,
            passes: 7,
            decompress_s: 0.001,
            compress_s: 0.004,
            decompress_cpu_s: 0.002,
            compress_cpu_s: 0.008,
        };
        let arm = |name: &str, kind, factor: f64| ArmOutcome {
            name: name.to_owned(),
            kind,
            io: None,
            compactors: None,
            notes: Vec::new(),
            runs: [40.0, 1.0, 2.0, 4.0]
                .into_iter()
                .zip(0..)
                .map(|(wall_s, repeat)| BenchRun {
                    attempt: Attempt {
                        repeat,
                        warm_up: repeat == 0,
                        order: repeat,
                        ..Attempt::default()
                    },
                    wall_s: factor * wall_s,
                    cpu_s: 0.5,
                    peak_rss_bytes: (kind != Ours(Work::Codec)).then_some(32 << 20),
                    io: None,
                    codec: (kind == Ours(Work::Codec)).then_some(times),
                })
                .collect(),
            failure: None,
        };
        let mut failed = arm("cassandra", External, 1.0);
        failed.runs.clear();
        failed.failure = Some("there is no Java".to_owned());
        let mut copy = arm("copy direct/direct", Ours(Work::Copy), 1.5);
        let deviation = Warning::new("deviation", "read dontneed, not direct");
        copy.runs[2].attempt.warnings.push(deviation);
        BenchOutcome {
            header: OutcomeHeader {
                format_version: 1,
                started_at_ms: 0,
                elapsed_s: 60.0,
                end: End::Complete,
            },
            options: BenchOptions {
                command: None,
                directory: "/data".into(),
                given: Vec::new(),
                generated: GenerateOptions::new(Shape::KeyValue, ""),
                works: Vec::new(),
                pairs: Vec::new(),
                compactors: vec![1],
                external: Vec::new(),
                repeats: 3,
                warm_ups: 1,
                warm: false,
                threads: 2,
                memory_bytes: 64 << 20,
                seed: 1,
                sample_bytes: 0,
            },
            environment: crate::environment::capture(&std::env::temp_dir(), "none".to_owned())
                .unwrap(),
            data: DataRecord {
                shape: "kv".to_owned(),
                version: "pa".to_owned(),
                compressor: Some("LZ4Compressor".to_owned()),
                chunk_length_bytes: Some(16 << 10),
                sstables: 3,
                bytes: 700_000_000,
                uncompressed_bytes: 1_000_000_000,
                partitions: 1_000_000,
            },
            data_file_bytes: 600_000_000,
            output: OutputFacts {
                sstables: 1,
                bytes: 500_000_000,
                uncompressed_bytes: 750_000_000,
                rows: 750_000,
                compression: Some(Compression(CompressionParams {
                    compressor: "LZ4Compressor".to_owned(),
                    options: Vec::new(),
                    chunk_len: 16 << 10,
                    max_compressed_len: i32::MAX as u32,
                })),
                crc32: 0xabcd,
            },
            arms: vec![
                arm("merge direct/direct", Ours(Work::Merge), 1.0),
                copy,
                arm("codec", Ours(Work::Codec), 0.5),
                failed,
            ],
            warnings: vec![Warning::new("virtual_disk", "the disk is virtual")],
        }
    }

    #[test]
    fn arms_are_compared_within_repeats_and_warm_ups_do_not_count() {
        let comparison = compare(&outcome());
        let [merge, copy, codec, failed] = &comparison.arms[..] else {
            panic!("{comparison:?}");
        };
        let wall = merge.spread(WALL).unwrap();
        assert_eq!((wall.repeats, wall.median), (3, 2.0));
        assert_eq!((wall.least, wall.most), (1.0, 4.0));
        assert_eq!(merge.median(THROUGHPUT), Some(500e6));
        assert!(merge.ratio(WALL, FIRST).is_none());
        // 1/0.5, 2/1, 4/2: the machine became slower from repeat to repeat, and this is not seen here.
        let to_codec = merge.ratio(WALL, CODEC).unwrap();
        let interval = (to_codec.ratio, to_codec.low, to_codec.high);
        assert_eq!(interval, (2.0, 2.0, 2.0));
        assert_eq!(copy.ratio(WALL, FIRST).unwrap().ratio, 1.5);
        assert!(codec.ratio(WALL, CODEC).is_none() && codec.median(PEAK_RSS).is_none());
        assert_eq!((failed.counted, failed.figures.len()), (0, 0));
    }

    #[test]
    fn the_table_shows_every_arm_and_marks_invalid_runs() {
        let outcome = outcome();
        let report = report(&outcome);
        let document = Report::document(std::slice::from_ref(&report));
        let text = document.to_text();
        let squeezed = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            " merge direct/direct 3 2.00 1.00–4.00 500 0.500 32.0 ",
            " copy direct/direct ! 3 ",
            "×1.50 (1.50–1.50) ×3.00 (3.00–3.00)",
            "! cassandra failed: there is no Java",
            "! copy direct/direct repeat 2: read dontneed, not direct",
            "! the disk is virtual",
            "codec: by a sample of 1 MiB in memory, 1.00 ms to decompress and 4.00 ms",
            "crc32 43,981",
        ] {
            assert!(squeezed.contains(part), "{part}\n{text}");
        }
        let markdown = document.to_markdown();
        assert!(
            markdown.contains("| copy direct/direct ! | 3 | 3.00 | 1.50–6.00 | 333 |"),
            "{markdown}"
        );
        assert!(!outcome.is_sound());
        let json = with_figures(&outcome, &report).unwrap();
        assert_eq!(json["figures"][0]["arm"], "merge direct/direct");
        assert_eq!(json["figures"][0]["figures"][0]["median"], 2.0);
        assert_eq!(json["data"]["shape"], "kv");
        assert_eq!(json["arms"][3]["failure"], "there is no Java");
    }
}
