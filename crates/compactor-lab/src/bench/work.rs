//! Our own arms, carried out in this process.

use std::io::{BufRead, Write};
use std::time::Instant;

use compactor::process::Usage;
use compactor::{MergeReport, MergeRequest, Observer, Purging, Resources, Result, Scope, Table};
use compactor_io::{
    Io, IoOptions, ReadMode, ReadaheadOptions, SequentialReader, WriteMode, WriterOptions,
    sync_directory,
};

use rustix::process::{Signal, set_parent_process_death_signal};

use super::{Done, IoPair, Reply, Request, Work, codec, read_line, write_line};
use crate::watcher::check_cancelled;

/// Carries out the one request that is read, and answers it. If its parent dies, this process is asked
/// to stop, as with Ctrl-C.
///
/// # Errors
/// A request that cannot be read, or a reply that cannot be written.
pub fn serve(
    from: &mut impl BufRead,
    to: &mut impl Write,
    observer: &mut dyn Observer,
) -> std::io::Result<()> {
    // Where it is refused, a child without a parent works to its end, and its reply is lost.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    let Some(request) = read_line(from)? else {
        return Ok(());
    };
    let reply = match carry_out(&request, observer) {
        Ok(done) => Reply::Done(done),
        Err(error) => Reply::Failed(error.to_string()),
    };
    write_line(to, &reply)
}

/// Carries out a request, and measures it. Peak memory is that of the process since it was started: the
/// kernel's account for a parent (`wait4`) would begin with what the parent itself once had.
///
/// # Errors
/// The error of the work, or cancellation. The output directory may hold part of a copy then.
fn carry_out(request: &Request, observer: &mut dyn Observer) -> Result<Done> {
    let before = Usage::now();
    let started = Instant::now();
    let mut done = Done::default();
    match request.work {
        Work::Merge => {
            let report = merge(request, observer)?;
            done.io = modes_of(&report);
            done.otherwise = otherwise(&report);
        }
        Work::Compact => done.otherwise = compact(request, observer)?,
        Work::Copy => (done.io, done.otherwise) = copy(request, observer)?,
        Work::Codec => done.codec = Some(codec::codec(request, observer)?),
    }
    done.wall_s = started.elapsed().as_secs_f64();
    let usage = Usage::now().since(&before);
    done.cpu_s = usage.cpu.as_secs_f64();
    done.peak_rss_bytes = usage.peak_rss_bytes;
    Ok(done)
}

/// Merges the inputs, which are the whole table, checking every component of them.
///
/// # Errors
/// As [`compactor::merge::merge()`].
pub(super) fn merge(request: &Request, observer: &mut dyn Observer) -> Result<MergeReport> {
    let mut options = MergeRequest::new(request.inputs.clone(), &request.output);
    options.scope = Scope::Complete;
    options.now_s = request.now_s;
    options.gc_before_s = Some(request.gc_before_s);
    options.read_mode = request.io.read;
    options.write_mode = request.io.write;
    options.threads = request.threads;
    options.memory_bytes = request.memory_bytes;
    compactor::merge::merge(options, observer)
}

/// Compacts the inputs, which are the whole table, until nothing is left to do. Returns what was done otherwise than
/// asked.
///
/// # Errors
/// As [`compactor::Compact`], also of a single compaction.
fn compact(request: &Request, observer: &mut dyn Observer) -> Result<Vec<String>> {
    let table = Table::open_all(&request.inputs, None)?;
    let mut purging = Purging::default();
    purging.scope = Scope::Complete;
    purging.now_s = Some(request.now_s);
    purging.gc_before_s = Some(request.gc_before_s);
    let mut resources = Resources::default();
    resources.read_mode = request.io.read;
    resources.write_mode = request.io.write;
    resources.threads = request.threads.max(request.compactors);
    resources.memory_bytes = request.memory_bytes;
    let compaction = table
        .compact()
        .purging(purging)
        .resources(resources)
        .concurrent(request.compactors)
        .flat(true)
        .open(&request.output)?;
    let (compacted, _) = compaction.run(observer)?;
    match compacted.error {
        Some(error) => Err(error),
        None => Ok(compacted.report.fallbacks.into_iter().collect()),
    }
}

/// Copies the inputs' `Data.db`, one after the other, read and written as a merge does. Returns the modes that
/// were used, and what was done otherwise than asked.
///
/// # Errors
/// A failed read or write, or cancellation.
fn copy(request: &Request, observer: &mut dyn Observer) -> Result<(Option<IoPair>, Vec<String>)> {
    let io = Io::new(IoOptions::default())?;
    let mut used = None;
    let mut done_bytes = 0;
    for (number, path) in request.inputs.iter().enumerate() {
        let input = io.open(path, request.io.read)?;
        let read = input.mode();
        let options = WriterOptions {
            expected_len: Some(input.len()),
            ..WriterOptions::default()
        };
        let target = request.output.join(number.to_string());
        let mut writer = io.create(&target, request.io.write, options)?;
        let mut reader = SequentialReader::whole(input, ReadaheadOptions::default());
        while let Some(extent) = reader.next()? {
            check_cancelled(observer.is_cancelled())?;
            writer.write_all(&extent)?;
            done_bytes += extent.len() as u64;
            observer.progress(done_bytes, 0, 0);
        }
        let write = writer.finish()?.mode;
        used = Some(IoPair { read, write });
    }
    sync_directory(&request.output)?;
    Ok((used, io.notes()))
}

fn modes_of(report: &MergeReport) -> Option<IoPair> {
    Some(IoPair {
        read: report.io.read_mode.parse().ok()?,
        write: report.io.write_mode.as_ref()?.parse().ok()?,
    })
}

fn otherwise(report: &MergeReport) -> Vec<String> {
    let mut found = report.io.fallbacks.clone();
    let is_direct = modes_of(report)
        .is_some_and(|modes| modes.read == ReadMode::Direct && modes.write == WriteMode::Direct);
    match report.page_cache.pages_resident() {
        Some(pages) if is_direct && pages > 0 => found.push(format!(
            "direct on both sides, and {pages} pages were left in the page cache"
        )),
        _ => {}
    }
    found
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use compactor::NoObserver;
    use compactor::generate::{Amount, GenerateOptions, Shape, generate};
    use compactor_testkit::{Need, skip};

    use super::*;

    /// A request without inputs.
    pub(crate) fn request(directory: &Path, work: Work) -> Request {
        Request {
            work,
            inputs: Vec::new(),
            output: directory.join("output"),
            keep_output: true,
            scratch: directory.to_owned(),
            io: IoPair {
                read: ReadMode::Auto,
                write: WriteMode::Auto,
            },
            threads: 2,
            compactors: 1,
            memory_bytes: 16 << 20,
            now_s: 1_800_000_000,
            gc_before_s: 1_799_000_000,
            compression: None,
            sample_bytes: 1 << 20,
        }
    }

    /// Guards against a compaction that used another I/O mode without being marked, as merges and copies are.
    #[test]
    fn fallbacks_of_all_works_are_reported() {
        let Ok(temp) = tempfile::TempDir::new_in("/dev/shm") else {
            return skip(Need::Tmpfs, "/dev/shm is not writable");
        };
        let mut options = GenerateOptions::new(Shape::KeyValue, temp.path().join("inputs"));
        options.amount = Amount::Bytes(256 << 10);
        options.sstables = 4;
        let made = generate(IoOptions::default(), options, &mut NoObserver).unwrap();
        let mut request = request(temp.path(), Work::Merge);
        request.inputs = made.sstables.iter().map(|s| s.data_path.clone()).collect();
        for work in [Work::Merge, Work::Compact, Work::Copy] {
            request.work = work;
            request.output = temp.path().join(format!("{work:?}"));
            std::fs::create_dir(&request.output).unwrap();
            let done = carry_out(&request, &mut NoObserver).unwrap();
            let modes = ["read mode auto uses", "write mode auto uses"];
            for mode in modes {
                let found = &done.otherwise;
                assert!(
                    found.iter().any(|it| it.contains(mode)),
                    "{work:?}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn every_byte_arrives_in_every_mode() {
        let temp = tempfile::tempdir().unwrap();
        let mut request = request(temp.path(), Work::Copy);
        for (number, len) in [0usize, 1, 5000, 3 << 20].into_iter().enumerate() {
            let path = temp.path().join(format!("input-{number}"));
            let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            std::fs::write(&path, bytes).unwrap();
            request.inputs.push(path);
        }
        let pairs = [
            (ReadMode::Auto, WriteMode::Auto),
            (ReadMode::Buffered, WriteMode::Trickle),
            (ReadMode::DontNeed, WriteMode::Buffered),
        ];
        for (read, write) in pairs {
            request.io = IoPair { read, write };
            request.output = temp.path().join(request.io.to_string().replace('/', "-"));
            std::fs::create_dir(&request.output).unwrap();
            let (used, _) = copy(&request, &mut NoObserver).unwrap();
            let used = used.unwrap();
            assert!(used.read != ReadMode::Auto && used.write != WriteMode::Auto);
            for (number, input) in request.inputs.iter().enumerate() {
                let copied = std::fs::read(request.output.join(number.to_string())).unwrap();
                assert!(copied == std::fs::read(input).unwrap(), "{number}");
            }
        }
    }
}
