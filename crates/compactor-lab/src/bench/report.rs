//! Report of a bench, for people and as JSON.

use serde::Serialize;

use super::{ArmFigures, ArmKind, BenchOutcome, figures};
use crate::report::document::{Block, Document, Facts, Section, Table, cell};
use crate::report::units::{bytes, mebibytes, milliseconds, significant};
use crate::report::{facts, with_interval};
use crate::stats::Spread;
use crate::text_table::{count, counted};

/// Report of a bench. In JSON the outcome itself with `figures` added.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport<'a> {
    /// Figures of each arm that has some.
    pub figures: Vec<ArmFigures>,
    /// Source of the figures.
    #[serde(flatten)]
    pub outcome: &'a BenchOutcome,
}

impl<'a> BenchReport<'a> {
    /// Computes the figures.
    pub fn new(outcome: &'a BenchOutcome) -> BenchReport<'a> {
        BenchReport {
            figures: figures::of(outcome),
            outcome,
        }
    }

    /// The report for people.
    pub fn document(&self) -> Document {
        let notes = self.notes().into_iter();
        let notes = notes.map(|(name, note)| Block::Paragraph(format!("{name}: {note}")));
        let mut blocks = vec![
            Block::Caveats("About these numbers", self.caveats()),
            Block::Table(self.table()),
        ];
        blocks.extend(notes);
        Document {
            title: "Bench".to_owned(),
            heading: "Speed of a merge",
            introduction: "A merge in comparison with a plain copy of the same files, the codec alone, and \
                Cassandra.",
            sections: vec![Section {
                facts: self.facts(),
                blocks,
                ..Section::default()
            }],
        }
    }

    fn facts(&self) -> Facts {
        let o = self.outcome;
        let options = &o.options;
        let mut facts = facts::of_experiment(
            ("bench", ""),
            o.started_at_ms,
            o.elapsed_s,
            &o.end,
            options.command.as_deref(),
        );
        let runs = format!(
            "{}; {}, {} of buffers; inputs {}",
            facts::repeats(options.repeats, "arm", options.seed, options.warm_ups),
            counted(options.threads as u64, "thread"),
            bytes(options.memory_bytes as f64),
            match options.warm {
                true => "in the page cache",
                false => "dropped from the page cache before each",
            }
        );
        facts.extend([
            ("inputs", self.inputs()),
            ("output", self.output()),
            ("runs", runs),
        ]);
        facts.extend(facts::machine(&o.environment));
        facts
    }

    fn inputs(&self) -> String {
        let data = &self.outcome.data;
        format!(
            "{} ({}, version {}, {}), {} uncompressed, {} in Data.db, {} partitions",
            counted(u64::from(data.sstables), "SSTable"),
            data.shape,
            data.version,
            compression(data.compressor.as_deref(), data.chunk_length_bytes),
            bytes(data.uncompressed_bytes as f64),
            bytes(self.outcome.data_file_bytes as f64),
            count(data.partitions),
        )
    }

    fn output(&self) -> String {
        let output = &self.outcome.output;
        let found = output.compression.as_ref();
        format!(
            "{} uncompressed, {} on disk, {} rows, {}; CRC32 {:08x} over all components after every \
             merge of ours that is not marked",
            bytes(output.uncompressed_bytes as f64),
            bytes(output.bytes as f64),
            count(output.rows),
            compression(
                found.map(|c| c.compressor.as_str()),
                found.map(|c| c.chunk_length_bytes)
            ),
            output.crc32,
        )
    }

    fn table(&self) -> Table {
        let range =
            |spread: &Spread| format!("{}–{}", significant(spread.least), significant(spread.most));
        Table::new(
            "Medians (least to most); MB/s of uncompressed input; time as a multiple of the first arm's \
             and of the codec's in the same repeat, with 95% intervals",
            &self.figures,
            &[
                ("arm", &|f| match self.is_marked(&f.name) {
                    true => format!("{} !", f.name),
                    false => f.name.clone(),
                }),
                ("wall s", &|f| significant(f.wall_s.median)),
                ("range", &|f| range(&f.wall_s)),
                ("MB/s", &|f| significant(f.uncompressed_bytes_per_s / 1e6)),
                ("CPU s", &|f| significant(f.cpu_s.median)),
                ("peak MiB", &|f| {
                    cell(f.peak_rss_bytes, |peak| mebibytes(peak.median))
                }),
                ("× first", &|f| cell(f.to_first, with_interval)),
                ("× codec", &|f| cell(f.to_codec, with_interval)),
            ],
        )
    }

    fn is_marked(&self, name: &str) -> bool {
        let arm = self.outcome.arms.iter().find(|arm| arm.name == name);
        arm.is_some_and(|arm| {
            arm.failure.is_some() || arm.runs.iter().any(|run| !run.otherwise.is_empty())
        })
    }

    /// Failures, and reasons not to trust the numbers.
    fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        for arm in &self.outcome.arms {
            if let Some(reason) = &arm.failure {
                caveats.push(format!("{} failed: {reason}", arm.name));
            }
            let mut said: Vec<&String> = Vec::new();
            for otherwise in arm.runs.iter().flat_map(|run| &run.otherwise) {
                if !said.contains(&otherwise) {
                    said.push(otherwise);
                    caveats.push(format!("{}: {otherwise}", arm.name));
                }
            }
        }
        caveats.extend(self.outcome.warnings.iter().map(|w| w.text.clone()));
        caveats
    }

    /// Notes on the arms.
    fn notes(&self) -> Vec<(String, String)> {
        let mut notes = Vec::new();
        for arm in &self.outcome.arms {
            // What `auto` came to.
            let used = arm.runs.last().and_then(|run| run.io);
            if let Some(used) = used.filter(|_| arm.io.is_some() && used != arm.io) {
                notes.push((arm.name.clone(), format!("it used {used}")));
            }
            notes.extend(
                arm.notes
                    .iter()
                    .map(|note| (arm.name.clone(), note.clone())),
            );
            let times = arm.runs.last().and_then(|run| run.codec);
            if let (ArmKind::Codec, Some(times)) = (arm.kind, times) {
                notes.push((
                    arm.name.clone(),
                    format!(
                        "by a sample of {} in memory, {} ms to decompress and {} ms to compress it on \
                         all threads, checksums included, medians of {} passes; scaled to {} in and \
                         {} out",
                        bytes(times.sample_bytes as f64),
                        milliseconds(times.decompress_s * 1e9),
                        milliseconds(times.compress_s * 1e9),
                        times.passes,
                        bytes(self.outcome.data.uncompressed_bytes as f64),
                        bytes(self.outcome.output.uncompressed_bytes as f64),
                    ),
                ));
            }
        }
        notes
    }
}

fn compression(compressor: Option<&str>, chunk_length: Option<u32>) -> String {
    match (compressor, chunk_length) {
        (Some(name), Some(length)) => format!("{name}, chunks of {}", bytes(f64::from(length))),
        _ => "not compressed".to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use compactor::generate::Shape;
    use compactor_sstable::Version;

    use super::super::{
        ArmOutcome, BenchOptions, BenchRun, CodecTimes, Compression, Generated, OutputFacts,
    };
    use super::*;
    use crate::outcome::{DataRecord, End, Warning};

    /// Three repeats after a warm-up, each twice as slow as the one before; an arm that failed.
    pub(crate) fn outcome() -> BenchOutcome {
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
            notes: Vec::new(),
            runs: [40.0, 1.0, 2.0, 4.0]
                .into_iter()
                .zip(0..)
                .map(|(wall_s, repeat)| BenchRun {
                    repeat,
                    warm_up: repeat == 0,
                    order: repeat,
                    wall_s: factor * wall_s,
                    cpu_s: 0.5,
                    peak_rss_bytes: (kind != ArmKind::Codec).then_some(32 << 20),
                    io: None,
                    codec: (kind == ArmKind::Codec).then_some(times),
                    otherwise: Vec::new(),
                })
                .collect(),
            failure: None,
        };
        let mut failed = arm("cassandra", ArmKind::External, 1.0);
        failed.runs.clear();
        failed.failure = Some("there is no Java".to_owned());
        let mut copy = arm("copy direct/direct", ArmKind::Copy, 1.5);
        copy.runs[2]
            .otherwise
            .push("read dontneed, not direct".to_owned());
        BenchOutcome {
            format_version: 1,
            started_at_ms: 0,
            elapsed_s: 60.0,
            end: End::Complete,
            options: BenchOptions {
                command: None,
                directory: "/data".into(),
                given: Vec::new(),
                generated: Generated {
                    shape: Shape::KeyValue,
                    bytes: 0,
                    sstables: 3,
                    version: Version::Pa,
                    compression: None,
                },
                kinds: Vec::new(),
                pairs: Vec::new(),
                external: Vec::new(),
                repeats: 3,
                warm_ups: 1,
                warm: false,
                threads: 2,
                memory_bytes: 64 << 20,
                seed: 1,
                sample_bytes: 0,
                now_s: 0,
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
                compression: Some(Compression {
                    compressor: "LZ4Compressor".to_owned(),
                    options: Vec::new(),
                    chunk_length_bytes: 16 << 10,
                    max_compressed_len: i32::MAX as u32,
                }),
                crc32: 0xabcd,
            },
            arms: vec![
                arm("merge direct/direct", ArmKind::Merge, 1.0),
                copy,
                arm("codec", ArmKind::Codec, 0.5),
                failed,
            ],
            warnings: vec![Warning::new("virtual_disk", "the disk is virtual")],
        }
    }

    #[test]
    fn the_table_tells_of_every_arm_and_marks_what_is_not_what_it_claims() {
        let outcome = outcome();
        let report = BenchReport::new(&outcome);
        let text = report.document().to_text();
        for part in [
            "  merge direct/direct      2.00    1.00–4.00    500   0.500       32.0 ",
            "  copy direct/direct !  ",
            "×1.50 (1.50–1.50)   ×3.00 (3.00–3.00)",
            "! cassandra failed: there is no Java",
            "! copy direct/direct: read dontneed, not direct",
            "! the disk is virtual",
            "codec: by a sample of 1 MiB in memory, 1.00 ms to decompress and 4.00 ms",
            "CRC32 0000abcd",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let markdown = report.document().to_markdown();
        assert!(
            markdown.contains("| copy direct/direct ! | 3.00 | 1.50–6.00 | 333 |"),
            "{markdown}"
        );
        assert!(!outcome.is_sound());
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["figures"][0]["wall_s"]["median"], 2.0);
        assert_eq!(json["data"]["shape"], "kv");
        assert_eq!(json["arms"][3]["failure"], "there is no Java");
    }
}
