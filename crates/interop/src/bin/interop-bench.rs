//! Times Cassandra's compaction of two half overlapping key-value SSTables, and ours of the same files.
//!
//! `cargo run --release -p interop --bin interop-bench -- --dir /on/a/real/disk [--gb 1] [--pipeline cursor|iterator]...`
//! With `COMPACTOR_BIN` set, `--ours "direct auto"` and the like also run `compactor merge` with these read and write
//! modes. Inputs are dropped from the page cache before each run unless `--warm` is given.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use interop::usage;
use interop::{Access, Bulk, Cassandra, CompactRequest, Mode, Options, Pipeline, Table};

/// Later than anything the inputs hold.
const NOW_S: i64 = 1_700_000_000;

#[derive(Debug)]
struct Arguments {
    directory: PathBuf,
    gigabytes: f64,
    value_bytes: u32,
    random_fraction: f64,
    chunk_kib: u32,
    runs: u32,
    warmups: u32,
    heap_mib: u32,
    mode: Mode,
    pipelines: Vec<Pipeline>,
    accesses: Vec<Access>,
    ours: Vec<(String, String)>,
    warm: bool,
    keep: bool,
}

/// One measured run.
struct Sample {
    wall: Duration,
    cpu: Duration,
    peak: u64,
    output: u64,
}

fn main() -> Result<()> {
    let arguments = parse()?;
    if interop::skip::without_cassandra() {
        return Ok(());
    }
    let options = Options {
        jvm: vec![
            format!("-Xmx{}m", arguments.heap_mib),
            "-XX:+AlwaysPreTouch".to_owned(),
        ],
        timeout: Duration::from_secs(3600),
        home_parent: Some(arguments.directory.clone()),
        ..Options::default()
    };
    fs::create_dir_all(&arguments.directory)?;
    let mut cassandra = Cassandra::start(arguments.mode, &options)?;
    let table = Table {
        keyspace: "bench".to_owned(),
        name: "kv".to_owned(),
    };
    cassandra.cql(&[
        "CREATE KEYSPACE bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}".to_owned(),
        format!(
            "CREATE TABLE bench.kv (k bigint PRIMARY KEY, v blob) WITH compression = \
             {{'class': 'LZ4Compressor', 'chunk_length_in_kb': {}}}",
            arguments.chunk_kib
        ),
    ])?;
    let inputs = inputs(&mut cassandra, &table, &arguments)?;
    let uncompressed: u64 = uncompressed(&mut cassandra, &table, &inputs)?;
    println!(
        "Cassandra {} ({}), 2 inputs, {:.2} GB uncompressed, {:.2} GB on disk, chunks of {} KiB, heap {} MiB, {}",
        cassandra.release(),
        arguments.mode,
        gigabytes(uncompressed),
        gigabytes(
            inputs
                .iter()
                .map(|path| fs::metadata(path).map_or(0, |data| data.len()))
                .sum()
        ),
        arguments.chunk_kib,
        arguments.heap_mib,
        if arguments.warm {
            "inputs cached"
        } else {
            "inputs not cached"
        },
    );
    println!(
        "{:<28} {:>8} {:>8} {:>10} {:>9} {:>10}",
        "who", "wall s", "cpu s", "peak MiB", "MB/s", "out GB"
    );
    for pipeline in &arguments.pipelines {
        for access in &arguments.accesses {
            let name = format!("cassandra {pipeline:?} {access:?}").to_lowercase();
            measure(&arguments, &name, &inputs, uncompressed, || {
                theirs(&mut cassandra, &table, &inputs, *pipeline, *access)
            })?;
        }
    }
    for (read, write) in &arguments.ours {
        let name = format!("ours {read}/{write}");
        measure(&arguments, &name, &inputs, uncompressed, || {
            ours(&arguments, &inputs, read, write)
        })?;
    }
    if !arguments.keep {
        fs::remove_dir_all(arguments.directory.join("inputs"))?;
    }
    Ok(())
}

fn measure(
    arguments: &Arguments,
    name: &str,
    inputs: &[PathBuf],
    uncompressed: u64,
    mut run: impl FnMut() -> Result<Sample>,
) -> Result<()> {
    for _ in 0..arguments.warmups {
        run().with_context(|| format!("{name}: warm-up"))?;
    }
    for _ in 0..arguments.runs {
        if !arguments.warm {
            drop_from_cache(inputs)?;
        }
        let sample = run().with_context(|| name.to_owned())?;
        println!(
            "{name:<28} {:>8.2} {:>8.2} {:>10.0} {:>9.0} {:>10.2}",
            sample.wall.as_secs_f64(),
            sample.cpu.as_secs_f64(),
            mebibytes(sample.peak),
            gigabytes(uncompressed) * 1000.0 / sample.wall.as_secs_f64(),
            gigabytes(sample.output),
        );
    }
    Ok(())
}

fn theirs(
    cassandra: &mut Cassandra,
    table: &Table,
    inputs: &[PathBuf],
    pipeline: Pipeline,
    access: Access,
) -> Result<Sample> {
    let process = cassandra.process_id();
    usage::reset_peak_memory(process)?;
    let before = usage::cpu(process)?;
    let compacted = cassandra.compact(
        table,
        &CompactRequest {
            inputs,
            others: &[],
            output: None,
            generation: 1,
            now_s: NOW_S,
            gc_before_s: Some(NOW_S - 864_000),
            pipeline,
            access: Some(access),
            max_sstable_size: None,
        },
    )?;
    Ok(Sample {
        wall: compacted.elapsed,
        // Includes opening the inputs: some milliseconds.
        cpu: usage::cpu(process)?.saturating_sub(before),
        peak: usage::peak_memory(process)?,
        output: compacted.output_bytes,
    })
}

fn ours(arguments: &Arguments, inputs: &[PathBuf], read: &str, write: &str) -> Result<Sample> {
    let binary = std::env::var_os("COMPACTOR_BIN").context("--ours needs COMPACTOR_BIN")?;
    let output = arguments.directory.join("ours");
    if output.exists() {
        fs::remove_dir_all(&output)?;
    }
    fs::create_dir_all(&output)?;
    let before = usage::cpu_of_children()?;
    let start = Instant::now();
    let mut child = Command::new(binary)
        .arg("merge")
        .args(inputs)
        .arg("--output")
        .arg(&output)
        .args([
            "--read-io",
            read,
            "--write-io",
            write,
            "--now",
            &NOW_S.to_string(),
        ])
        .args([
            "--gc-before",
            &(NOW_S - 864_000).to_string(),
            "--complete",
            "--progress",
            "none",
        ])
        .stdout(Stdio::null())
        .spawn()?;
    let mut peak = 0;
    let status = loop {
        if let Ok(now) = usage::peak_memory(child.id()) {
            peak = peak.max(now);
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let wall = start.elapsed();
    ensure!(status.success(), "compactor merge ended with {status}");
    let mut bytes = 0;
    for entry in fs::read_dir(&output)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().ends_with("-Data.db") {
            bytes += entry.metadata()?.len();
        }
    }
    let cpu = usage::cpu_of_children()?.saturating_sub(before);
    fs::remove_dir_all(&output)?;
    Ok(Sample {
        wall,
        cpu,
        peak,
        output: bytes,
    })
}

/// Writes the inputs, or takes those of an earlier run with `--keep`.
fn inputs(cassandra: &mut Cassandra, table: &Table, arguments: &Arguments) -> Result<Vec<PathBuf>> {
    // Key, sizes, flags: what a row takes beside its value.
    let row_bytes = f64::from(arguments.value_bytes) + 30.0;
    let rows = arguments.gigabytes * 1e9 / row_bytes;
    ensure!(
        rows >= 2.0 && rows < f64::from(u32::MAX),
        "{rows} rows per input"
    );
    // Truncated on purpose: the bounds were checked just above.
    let rows: u32 = format!("{:.0}", rows.floor()).parse()?;
    let mut found = Vec::new();
    for (generation, first) in [(1_u32, 0), (2, u64::from(rows) / 2)] {
        let place = arguments
            .directory
            .join("inputs")
            .join(generation.to_string());
        let data = place.join(format!("{}-{generation}-big-Data.db", arguments.mode));
        if !data.exists() {
            let start = Instant::now();
            cassandra.bulk(
                table,
                &Bulk {
                    output: &place,
                    generation,
                    first,
                    rows,
                    value_bytes: arguments.value_bytes,
                    random_fraction: arguments.random_fraction,
                    timestamp: i64::from(generation) * 1_000_000,
                },
            )?;
            println!(
                "wrote {} in {:.1} s",
                data.display(),
                start.elapsed().as_secs_f64()
            );
        }
        found.push(data);
    }
    Ok(found)
}

fn uncompressed(cassandra: &mut Cassandra, table: &Table, inputs: &[PathBuf]) -> Result<u64> {
    let mut total = 0;
    for input in inputs {
        let metadata = cassandra.metadata(table, input)?;
        total += metadata["uncompressed_length"]
            .as_u64()
            .context("no uncompressed length")?;
    }
    Ok(total)
}

/// Writes back and forgets every component of the inputs.
fn drop_from_cache(inputs: &[PathBuf]) -> Result<()> {
    for directory in inputs.iter().filter_map(|input| input.parent()) {
        for entry in fs::read_dir(directory)? {
            forget(&entry?.path())?;
        }
    }
    Ok(())
}

fn forget(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "for display")]
fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "for display")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / 1024.0 / 1024.0
}

fn parse() -> Result<Arguments> {
    let mut arguments = Arguments {
        directory: PathBuf::new(),
        gigabytes: 1.0,
        value_bytes: 1000,
        random_fraction: 0.5,
        chunk_kib: 16,
        runs: 3,
        warmups: 2,
        heap_mib: 2048,
        mode: Mode::Pa,
        pipelines: Vec::new(),
        accesses: Vec::new(),
        ours: Vec::new(),
        warm: false,
        keep: false,
    };
    let mut rest = std::env::args().skip(1);
    while let Some(name) = rest.next() {
        match name.as_str() {
            "--warm" => arguments.warm = true,
            "--keep" => arguments.keep = true,
            _ => {
                let value = rest
                    .next()
                    .with_context(|| format!("{name} needs a value"))?;
                option(&mut arguments, &name, &value)?;
            }
        }
    }
    ensure!(
        !arguments.directory.as_os_str().is_empty(),
        "--dir DIR is required: it must be on a real disk"
    );
    if arguments.pipelines.is_empty() {
        arguments.pipelines = vec![Pipeline::Cursor, Pipeline::Iterator];
    }
    if arguments.accesses.is_empty() {
        arguments.accesses = vec![Access::Buffered, Access::Direct];
    }
    Ok(arguments)
}

fn option(arguments: &mut Arguments, name: &str, value: &str) -> Result<()> {
    match (name, value) {
        ("--dir", _) => arguments.directory = PathBuf::from(value),
        ("--gb", _) => arguments.gigabytes = value.parse()?,
        ("--value-bytes", _) => arguments.value_bytes = value.parse()?,
        ("--random", _) => arguments.random_fraction = value.parse()?,
        ("--chunk-kib", _) => arguments.chunk_kib = value.parse()?,
        ("--runs", _) => arguments.runs = value.parse()?,
        ("--warmups", _) => arguments.warmups = value.parse()?,
        ("--heap-mib", _) => arguments.heap_mib = value.parse()?,
        ("--mode", _) => {
            arguments.mode =
                Mode::of_version(value).with_context(|| format!("unknown mode {value}"))?;
        }
        ("--pipeline", "cursor") => arguments.pipelines.push(Pipeline::Cursor),
        ("--pipeline", "iterator") => arguments.pipelines.push(Pipeline::Iterator),
        ("--access", "buffered") => arguments.accesses.push(Access::Buffered),
        ("--access", "direct") => arguments.accesses.push(Access::Direct),
        ("--ours", _) => {
            let mut modes = value.split_whitespace();
            let read = modes.next().context("--ours needs a read mode")?.to_owned();
            let write = modes.next().unwrap_or(&read).to_owned();
            arguments.ours.push((read, write));
        }
        _ => bail!(
            "unknown option {name} {value}: --dir --gb --value-bytes --random --chunk-kib --runs --warmups --heap-mib --mode \
             --pipeline cursor|iterator --access buffered|direct --ours \"READ WRITE\" --warm --keep"
        ),
    }
    Ok(())
}
