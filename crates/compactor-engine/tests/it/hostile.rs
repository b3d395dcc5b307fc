//! Data.db files with damaged bytes and without checksums: a merge reports an error or writes a valid output.
//! It never panics, hangs, or allocates memory for data that does not exist.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use compactor_engine::input::InputSstable;
use compactor_engine::job::{OutputCompression, Scope};
use compactor_engine::read::{BlockSource, DecodeOptions, DecodedBlocks, Reading, Workers};
use compactor_engine::row::PurgeLimit;
use compactor_io::ReadMode;
use compactor_sstable::Component;
use compactor_testkit::machine::disk_directory;

use crate::files::{contents, io, merge_files, options, scan, sstables};
use compactor_testkit::campaign;
use compactor_testkit::model::case::case;
use compactor_testkit::model::choices::Choices;
use compactor_testkit::model::engine::{Input, Unobserved, merge_raw};
use compactor_testkit::model::generate::GC_BEFORE_S;
use compactor_testkit::model::table::hex;

/// Environment variable with which the test runs in a separate process.
const CHILD: &str = "COMPACTOR_TEST_HOSTILE_CHILD";

/// Uncompressed bytes of a file, and all that is needed to read them.
#[derive(Clone)]
struct Sample {
    name: String,
    input: Input,
}

/// SSTables written by Cassandra, in the repository.
fn testdata() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compactor-sstable/testdata");
    let names = contents(&directory).into_keys();
    let found: Vec<PathBuf> = names
        .filter(|name| name.to_string_lossy().ends_with("-big-Data.db"))
        .filter(|name| name.to_string_lossy().contains("inputs"))
        .map(|name| directory.join(name))
        .collect();
    assert!(found.len() > 5, "{found:?}");
    found
}

fn sample_of(path: &Path) -> Sample {
    let input = InputSstable::open(&io(), path, ReadMode::Buffered).unwrap();
    let workers = Workers::start(1).unwrap();
    let mut blocks = DecodedBlocks::start(
        input.open_data(&io()).unwrap(),
        Arc::clone(&input.encoding),
        Reading {
            decode: DecodeOptions {
                block_len: 1 << 20,
                depth: 1,
                decoded: 1,
                headroom: 0,
            },
            queue: workers.queue(),
            cancelled: Arc::default(),
            limiter: None,
        },
    );
    let mut bytes = Vec::new();
    while let Some(block) = blocks.next_block().unwrap() {
        bytes.extend_from_slice(block.data());
    }
    // In longer files, damage would be rarer.
    bytes.truncate(20_000);
    Sample {
        name: path.display().to_string(),
        input: Input {
            header: input.header().clone(),
            version: input.descriptor.version,
            bytes,
            block_len: 1000,
            min_local_deletion_time: 0,
            may_have_ttl: true,
        },
    }
}

/// A random table, for features that the real files do not have.
fn random_sample(choices: &mut Choices) -> Sample {
    loop {
        let case = case(choices, 1);
        let input = case.sources[0].input(&case.schema);
        if (20..10_000).contains(&input.bytes.len()) {
            let name = "random".to_owned();
            return Sample { name, input };
        }
    }
}

fn mutate(bytes: &mut Vec<u8>, choices: &mut Choices) {
    for _ in 0..choices.pick(&[1, 1, 1, 2, 5]) {
        if bytes.is_empty() {
            return;
        }
        let at = choices.below(bytes.len());
        match choices.below(8) {
            0 | 1 => bytes[at] ^= 1 << choices.below(8),
            2 | 3 => bytes[at] = choices.pick(&[0, 1, 2, 0x7f, 0x80, 0xc0, 0xfe, 0xff]),
            4 => bytes[at] = choices.number() as u8,
            5 => {
                let inserted: &[u8] = choices.pick(&[
                    &[0][..],
                    &[0xff],
                    &[0xff; 9],
                    &[0x80, 0],
                    &[0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
                ]);
                bytes.splice(at..at, inserted.iter().copied());
            }
            6 => {
                let end = (at + 1 + choices.below(10)).min(bytes.len());
                bytes.drain(at..end);
            }
            _ => {
                let from = choices.below(bytes.len());
                let len = choices.below(30).min(bytes.len() - at.max(from));
                bytes.copy_within(from..from + len, at);
            }
        }
    }
    if choices.chance(3) {
        bytes.truncate(choices.below(bytes.len() + 1));
    }
}

/// Merges a mutated sample, alone or with the original. Returns whether that succeeded.
fn merge_mutated(sample: &Sample, choices: &mut Choices) -> Result<bool, String> {
    let mut bytes = sample.input.bytes.clone();
    mutate(&mut bytes, choices);
    let input = |bytes: Vec<u8>, choices: &mut Choices| Input {
        bytes,
        block_len: choices.pick(&[40, 1000, 100_000]),
        min_local_deletion_time: 0,
        ..sample.input.clone()
    };
    let mut inputs = vec![input(bytes, choices)];
    if choices.chance(50) {
        inputs.push(input(sample.input.bytes.clone(), choices));
    }
    // Wrong statistics: rows are kept that should have been purged.
    let is_misled = choices.chance(30);
    if is_misled {
        inputs[0].min_local_deletion_time = i64::MAX;
    }
    let gc_before_s = choices.pick(&[i64::MIN, GC_BEFORE_S, 2_000_000_000]);
    let header = &sample.input.header;
    let merge = |inputs: &[Input]| {
        let limit = PurgeLimit::Unlimited;
        merge_raw(inputs, header, gc_before_s, limit, &mut Unobserved)
    };
    let Ok(output) = merge(&inputs) else {
        return Ok(false);
    };
    let again = Input {
        bytes: output.clone(),
        min_local_deletion_time: 0,
        ..inputs[0].clone()
    };
    match merge(&[again]) {
        Ok(bytes) if bytes == output || is_misled => Ok(true),
        Ok(bytes) => {
            let same = |(a, b): &(&u8, &u8)| a == b;
            let at = output.iter().zip(&bytes).take_while(same).count();
            let from = |bytes: &[u8]| hex(&bytes[at.saturating_sub(90)..bytes.len().min(at + 90)]);
            let (first, second) = (from(&output), from(&bytes));
            Err(format!(
                "merging the output changes it at {at}\n{first}\n{second}\n{header:?}"
            ))
        }
        Err(error) => Err(format!("the output cannot be read: {error}")),
    }
}

/// Peak memory of this process, bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

/// Not a test: the mutations, in a process whose memory can be measured.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let samples: Vec<Sample> = testdata().iter().map(|path| sample_of(path)).collect();
    let (first, cases) = (campaign::first_seed(), campaign::cases(3000));
    let (mut refused, mut merged, mut slowest) = (0, 0, Duration::ZERO);
    for seed in (first..).take(cases) {
        let mut choices = Choices::from_seed(seed);
        let sample = match choices.below(2) {
            0 => samples[choices.below(samples.len())].clone(),
            _ => random_sample(&mut choices),
        };
        let started = Instant::now();
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            merge_mutated(&sample, &mut choices)
        }));
        slowest = slowest.max(started.elapsed());
        match result {
            Ok(Ok(true)) => merged += 1,
            Ok(Ok(false)) => refused += 1,
            Ok(Err(what)) => panic!("seed {seed}, {}: {what}", sample.name),
            Err(_) => panic!("seed {seed}, {}: a panic", sample.name),
        }
    }
    println!(
        "{refused} refused, {merged} merged, slowest {slowest:?}, {} MiB",
        peak_memory() >> 20
    );
    assert!(peak_memory() < 128 << 20, "{} bytes", peak_memory());
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
    assert!(
        refused > cases / 10 && merged > cases / 10,
        "{refused}, {merged}"
    );
}

#[test]
fn mutated_bytes() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "hostile::child",
            "--nocapture",
            "--test-threads",
            "1",
        ])
        .env(CHILD, "1")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(90 + campaign::cases(480) as u64);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "see above");
            return;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("a merge of mutated bytes hangs");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The same with files and jobs: there is no output or a valid one, no other file is left, and inputs are
/// unchanged.
#[test]
fn mutated_files() {
    let directory = disk_directory();
    let io = io();
    let (mut refused, mut merged) = (0, 0);
    let mut choices = Choices::from_seed(campaign::first_seed());
    for path in testdata() {
        // A copy without compression, whose bytes are not protected once CRC.db has been removed.
        let inputs = directory.path().join("inputs");
        let mut plain = options(std::slice::from_ref(&path), &inputs);
        plain.compression = OutputCompression::None;
        merge_files(&io, plain).unwrap();
        let data = sstables(&inputs).remove(0);
        for suffix in ["CRC.db", "Digest.crc32", "TOC.txt"] {
            std::fs::remove_file(data.to_str().unwrap().replace("Data.db", suffix)).unwrap();
        }
        let original = std::fs::read(&data).unwrap();
        for _ in 0..campaign::cases(12) {
            let mut bytes = original.clone();
            mutate(&mut bytes, &mut choices);
            std::fs::write(&data, &bytes).unwrap();
            let before = contents(&inputs);
            let output = directory.path().join("output");
            let mut options = options(&[data.clone(), path.clone()], &output);
            options.scope = Scope::Complete;
            options.gc_before_s = Some(options.now_s - 100);
            match merge_files(&io, options) {
                Ok(outcome) => {
                    merged += 1;
                    if let Some(written) = outcome.outputs.first() {
                        let partitions = scan(&written.descriptor.path(Component::Data)).unwrap();
                        assert_eq!(partitions, written.partitions);
                        std::fs::remove_dir_all(&output).unwrap();
                    }
                }
                Err(error) => {
                    refused += 1;
                    let message = error.to_string();
                    // A mutated deletion time may be one that the output's version cannot represent.
                    let names_cause = ["-big-Data.db", "version nb"];
                    assert!(names_cause.iter().any(|c| message.contains(c)), "{message}");
                }
            }
            assert!(!output.exists(), "{:?}", contents(&output).keys());
            assert!(contents(&inputs) == before, "inputs have changed");
        }
        std::fs::remove_dir_all(&inputs).unwrap();
    }
    eprintln!("{refused} refused, {merged} merged");
    assert!(refused > 0 && merged > 0);
}
