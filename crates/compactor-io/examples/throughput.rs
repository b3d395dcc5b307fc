//! Writes and reads one file in every mode on both backends and prints the throughput of each.
//!
//! `cargo run --release -p compactor-io --example throughput -- DIR [MiB] [depth]`
//!
//! Each figure is that of a single run, including other load on the machine: repeat before drawing
//! conclusions.
#![expect(clippy::unwrap_used, reason = "a failed measurement may panic")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use compactor_io::{
    BackendKind, Io, IoError, IoOptions, ReadMode, ReadaheadOptions, SequentialReader, WriteMode,
    WriterOptions, drop_clean_pages, residency,
};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().expect("DIR [MiB] [depth]"));
    let mib: u64 = arguments.next().map_or(1024, |text| text.parse().unwrap());
    let depth: usize = arguments.next().map_or(8, |text| text.parse().unwrap());
    let path = directory.join("throughput.tmp");
    let portion: Vec<u8> = (0..1u32 << 20)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();

    println!(
        "{:8} {:6} {:10} {:>7} {:>9} {:>8}",
        "backend", "", "mode", "MiB/s", "cpu ms", "pages"
    );
    for backend in [
        BackendKind::Uring,
        BackendKind::TokioUring,
        BackendKind::Threads,
    ] {
        let options = |backend| IoOptions {
            backend,
            ..IoOptions::default()
        };
        for &mode in &WriteMode::ALL[1..] {
            let dontcache = mode == WriteMode::DontCache && backend != BackendKind::Threads;
            let io = Io::new(options(if dontcache {
                BackendKind::Auto
            } else {
                backend
            }))
            .unwrap();
            let _ = std::fs::remove_file(&path);
            report(backend, "write", mode.name(), mib, &path, || {
                let options = WriterOptions {
                    in_flight: depth,
                    ..WriterOptions::default()
                };
                let mut writer = io.create(&path, mode, options)?;
                for _ in 0..mib {
                    writer.write_all(&portion)?;
                }
                writer.finish().map(drop)
            });
        }
        for &mode in &ReadMode::ALL[1..] {
            let dontcache = mode == ReadMode::DontCache && backend != BackendKind::Threads;
            let io = Io::new(options(if dontcache {
                BackendKind::Auto
            } else {
                backend
            }))
            .unwrap();
            drop_clean_pages(&path).unwrap();
            report(backend, "read", mode.name(), mib, &path, || {
                let input = io.open(&path, mode)?;
                let options = ReadaheadOptions {
                    depth,
                    ..ReadaheadOptions::default()
                };
                let mut reader = SequentialReader::whole(input.clone(), options);
                let mut bytes = 0;
                while let Some(extent) = reader.next()? {
                    bytes += extent.len() as u64;
                }
                assert_eq!(bytes, mib << 20);
                input.evict();
                Ok(())
            });
        }
    }
    std::fs::remove_file(&path).unwrap();
}

fn report(
    backend: BackendKind,
    direction: &str,
    mode: &str,
    mib: u64,
    path: &Path,
    run: impl FnOnce() -> Result<(), IoError>,
) {
    let (start, cpu) = (Instant::now(), cpu_ms());
    let result = run();
    let seconds = start.elapsed().as_secs_f64();
    let cpu = cpu_ms() - cpu;
    match result {
        Ok(()) => {
            let pages = residency(path).unwrap().pages_resident.unwrap();
            let rate = mib as f64 / seconds;
            println!("{backend:8} {direction:6} {mode:10} {rate:7.0} {cpu:9} {pages:8}");
        }
        Err(error) => println!("{backend:8} {direction:6} {mode:10} {error}"),
    }
}

/// CPU time of this process, including time spent in the kernel for it, but not that of kernel threads, which
/// do write-back.
fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, after_name) = stat.rsplit_once(')').unwrap();
    let ticks: u64 = after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|n| n.parse::<u64>().unwrap())
        .sum();
    ticks * 10
}
