//! Cassandra as an arm of `compactor bench`: compacts on request, in one JVM that stays warm.
//!
//! `compactor bench --cassandra 'cargo run --release -p interop --bin interop-bench --'`
//!
//! Requests and replies are those of [`compactor_lab::bench`], a line of JSON each.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use compactor_lab::bench::{
    Compression, Done, Introduction, Reply, Request, Work, read_line, write_line,
};
use interop::usage;
use interop::{Access, Cassandra, CompactRequest, Mode, Options, Pipeline, Release, Table};

/// Cassandra as an arm of `compactor bench`, which starts this and sends it the inputs to compact:
/// `compactor bench --cassandra 'interop-bench --pipeline iterator'`.
#[derive(Debug, Parser)]
struct Arguments {
    /// Heap of the JVM.
    #[arg(long, value_name = "N", default_value_t = 2048)]
    heap_mib: u32,
    /// Compaction pipeline of Cassandra.
    #[arg(long, value_enum, default_value_t = Pipeline::Cursor)]
    pipeline: Pipeline,
    /// How the compaction reads and writes files.
    #[arg(long, value_enum, default_value_t = Access::Direct)]
    access: Access,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    interop::skip::need_cassandra()?;
    // Maven and javac run before the benchmark: they would distort its measurements.
    Release::Six.prepare()?;
    let (mut from, mut to) = (std::io::stdin().lock(), std::io::stdout().lock());
    write_line(&mut to, &introduction(&arguments))?;
    serve(&arguments, &mut from, &mut to)
}

fn introduction(arguments: &Arguments) -> Introduction {
    let words = format!("{:?} {:?}", arguments.pipeline, arguments.access);
    Introduction {
        name: format!(
            "cassandra {} {}",
            Release::Six.version(),
            words.to_lowercase()
        ),
        notes: vec![format!(
            "its CompactionTask alone in a JVM with a heap of {} MiB, touched at the start, that stays \
             up between its runs and idles during others; time and processor time are of the task, \
             peak memory is the JVM's meanwhile",
            arguments.heap_mib
        )],
    }
}

fn serve(arguments: &Arguments, from: &mut impl BufRead, to: &mut impl Write) -> Result<()> {
    let mut node: Option<Node> = None;
    while let Some(request) = read_line::<Request>(from)? {
        let done = compact(arguments, &mut node, &request);
        let reply = done.map_or_else(|e| Reply::Failed(format!("{e:#}")), Reply::Done);
        write_line(to, &reply)?;
    }
    Ok(())
}

/// A Cassandra that has the table of the requests.
struct Node {
    cassandra: Cassandra,
    table: Table,
    inputs: Vec<PathBuf>,
}

fn compact(arguments: &Arguments, node: &mut Option<Node>, request: &Request) -> Result<Done> {
    ensure!(
        request.work == Work::Merge,
        "{:?} is not Cassandra's work",
        request.work
    );
    if node
        .as_ref()
        .is_none_or(|node| node.inputs != request.inputs)
    {
        *node = None;
        *node = Some(start(arguments, request)?);
    }
    let node = node.as_mut().context("there is no node")?;
    let process = node.cassandra.process_id();
    usage::reset_peak_memory(process)?;
    let before = usage::cpu(process)?;
    let compact = CompactRequest {
        output: request.keep_output.then_some(request.output.as_path()),
        gc_before_s: Some(request.gc_before_s),
        pipeline: arguments.pipeline,
        access: Some(arguments.access),
        ..CompactRequest::new(&request.inputs, &request.output, request.now_s)
    };
    let compacted = node.cassandra.compact(&node.table, &compact)?;
    Ok(Done {
        wall_s: compacted.elapsed.as_secs_f64(),
        // Includes opening the inputs (some milliseconds) and moving an output that is kept.
        cpu_s: usage::cpu(process)?.saturating_sub(before).as_secs_f64(),
        peak_rss_bytes: usage::peak_memory(process)?,
        ..Done::default()
    })
}

fn start(arguments: &Arguments, request: &Request) -> Result<Node> {
    let mode = mode_of(&request.inputs)?;
    // Cassandra would silently fall back to the iterator pipeline (`CursorCompactor.isSupported`).
    ensure!(
        arguments.pipeline == Pipeline::Iterator || mode == Mode::Pa,
        "the cursor pipeline takes only inputs of version pa, and these are {mode}; use --pipeline iterator"
    );
    let options = Options {
        jvm: vec![
            format!("-Xmx{}m", arguments.heap_mib),
            "-XX:+AlwaysPreTouch".to_owned(),
        ],
        timeout: Duration::from_secs(3600),
        home_parent: request.scratch.clone(),
        // Preemptive opening would read the output again during the measurement.
        yaml: "sstable_preemptive_open_interval: null\n".to_owned(),
        ..Options::default()
    };
    let mut cassandra = Cassandra::start(mode, &options)?;
    let table = Table::new("bench", "t");
    cassandra.adopt(&table, &request.inputs)?;
    cassandra.cql(&[format!(
        "ALTER TABLE bench.t WITH compression = {}",
        compression(request.compression.as_ref())
    )])?;
    Ok(Node {
        cassandra,
        table,
        inputs: request.inputs.clone(),
    })
}

/// The mode of Cassandra 6 that writes the version of the inputs.
fn mode_of(inputs: &[PathBuf]) -> Result<Mode> {
    let names = inputs.iter().filter_map(|path| path.file_name()?.to_str());
    let mut versions: Vec<&str> = names.filter_map(|name| name.split('-').next()).collect();
    versions.dedup();
    let [version] = &versions[..] else {
        bail!("inputs of several versions: {}", versions.join(", "));
    };
    Mode::of_version(version)
        .filter(|mode| mode.release() == Release::Six)
        .with_context(|| format!("Cassandra 6 does not write version {version}"))
}

/// Compression options as a CQL map.
fn compression(compression: Option<&Compression>) -> String {
    let Some(Compression(c)) = compression else {
        return "{'enabled': false}".to_owned();
    };
    let options = c.options.iter();
    let options = options.map(|(name, value)| format!(", '{name}': '{value}'"));
    // Like our outputs by default: chunks are stored compressed, however little that saves.
    let ratio = match c.max_compressed_len {
        len if len >= i32::MAX as u32 => 0.0,
        len => f64::from(c.chunk_len) / f64::from(len),
    };
    format!(
        "{{'class': '{}', 'chunk_length_in_kb': {}, 'min_compress_ratio': {ratio}{}}}",
        c.compressor,
        c.chunk_len >> 10,
        options.collect::<String>()
    )
}
