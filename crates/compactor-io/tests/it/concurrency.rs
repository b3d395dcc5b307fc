//! Many concurrent operations, and dropping owners while operations are in flight.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use compactor_io::{IoOptions, ReadMode, WriteMode, WriterOptions};
use compactor_testkit::io::{BACKENDS, io_on, io_with};
use compactor_testkit::machine::disk_directory;

use crate::support::{content, descriptors_of};

const MIB: usize = 1 << 20;

/// A burst beyond the completion queue that hangs, or buffers allocated for queued reads.
#[test]
fn far_more_reads_than_the_queue_depth_complete_in_bounded_memory() {
    let directory = disk_directory();
    let path = directory.path().join("file");
    let bytes = Arc::new(content(4 * MIB));
    fs::write(&path, &*bytes).unwrap();
    for backend in BACKENDS {
        for queue_depth in [1, 32] {
            let options = IoOptions {
                backend,
                queue_depth,
                ..IoOptions::default()
            };
            let Some(io) = io_with(options) else {
                continue;
            };
            for mode in [ReadMode::Auto, ReadMode::Buffered] {
                let input = io.open(&path, mode).unwrap();
                let (sender, receiver) = mpsc::channel();
                let reads = 2000;
                for number in 0..reads {
                    let (offset, len) = place(number, bytes.len());
                    let (sender, bytes) = (sender.clone(), Arc::clone(&bytes));
                    input.submit_read(
                        offset as u64,
                        len,
                        Box::new(move |result| {
                            let extent = result.unwrap();
                            sender
                                .send(extent[..] == bytes[offset..offset + len])
                                .unwrap();
                        }),
                    );
                }
                drop(sender);
                let answers: Vec<bool> = receiver.iter().collect();
                assert_eq!(answers.len(), reads);
                assert!(answers.into_iter().all(|same| same));
                let in_flight = queue_depth.max(IoOptions::default().worker_threads) as u64;
                // A buffer is at most 64 KiB and two blocks; one more may be on its way to the pool.
                let limit = (in_flight + 1) * (72 << 10) + (32 << 20);
                assert!(io.pool().peak_bytes() <= limit, "{:?}", io.pool());
            }
        }
    }
}

/// A pseudo-random range of up to 64 KiB.
fn place(number: usize, file_len: usize) -> (usize, usize) {
    let len = number * 7919 % 65_536 + 1;
    (number * 1_299_709 % (file_len - len), len)
}

/// A completion that is lost, or runs twice, if the owner is dropped first.
#[test]
fn dropping_everything_with_operations_in_flight_is_clean() {
    let directory = disk_directory();
    let path = directory.path().join("file");
    fs::write(&path, content(4 * MIB)).unwrap();
    for backend in BACKENDS {
        for round in 0..10 {
            let Some(io) = io_on(backend) else { continue };
            let gauge = io.pool().clone();
            let input = io.open(&path, ReadMode::ALL[round % 4]).unwrap();
            let completed = Arc::new(AtomicUsize::new(0));
            let (sender, receiver) = mpsc::channel::<()>();
            for number in 0..500 {
                let (offset, len) = place(number, 4 * MIB);
                let completed = Arc::clone(&completed);
                let sender = sender.clone();
                input.submit_read(
                    offset as u64,
                    len,
                    Box::new(move |result| {
                        drop(result.unwrap());
                        completed.fetch_add(1, Ordering::Relaxed);
                        drop(sender);
                    }),
                );
            }
            drop((sender, input, io));
            // Ends when the last completion has run.
            assert!(receiver.recv().is_err());
            assert_eq!(completed.load(Ordering::Relaxed), 500);
            assert_eq!(gauge.in_use_bytes(), 0, "{backend}");
        }
    }
}

/// Descriptors that stay open when files are closed, until there are none left.
#[test]
fn closed_files_release_their_descriptors() {
    let directory = disk_directory();
    let path = directory.path().join("file");
    fs::write(&path, content(5000)).unwrap();
    for backend in BACKENDS {
        let Some(io) = io_on(backend) else { continue };
        for _ in 0..1000 {
            let input = io.open(&path, ReadMode::Auto).unwrap();
            assert_eq!(input.read_at(0, 5000).unwrap().len(), 5000);
        }
        // A last operation on the same I/O thread completes after all before it.
        let last = io.open(&path, ReadMode::Auto).unwrap();
        last.read_at(0, 1).unwrap();
        assert!(
            descriptors_of(&path).len() <= 2 + 1,
            "{:?}",
            descriptors_of(&path)
        );
    }
}

/// A writer that is dropped with writes in flight, and its buffers.
#[test]
fn dropping_a_writer_waits_for_its_writes_and_leaves_the_file() {
    let directory = disk_directory();
    for backend in BACKENDS {
        let Some(io) = io_on(backend) else { continue };
        for &mode in &WriteMode::ALL[..5] {
            let path = directory.path().join(format!("{backend}-{mode}"));
            let options = WriterOptions {
                trickle_bytes: 1 << 20,
                ..WriterOptions::default()
            };
            let mut writer = io.create(&path, mode, options).unwrap();
            writer.write_all(&content(7 * MIB + 5)).unwrap();
            drop(writer);
            assert_eq!(io.pool().in_use_bytes(), 0);
            assert!(path.exists());
        }
    }
}

/// A panic in one completion that ends the I/O thread, and all other reads with it.
#[test]
fn a_panicking_completion_affects_no_other() {
    let directory = disk_directory();
    let path = directory.path().join("file");
    fs::write(&path, content(5000)).unwrap();
    for backend in BACKENDS {
        let Some(io) = io_on(backend) else { continue };
        let input = io.open(&path, ReadMode::Auto).unwrap();
        for _ in 0..50 {
            let (sender, receiver) = mpsc::channel::<()>();
            input.submit_read(
                0,
                1,
                Box::new(move |_| {
                    let _sender = sender;
                    // Not `panic!`: the hook would print fifty backtraces.
                    std::panic::resume_unwind(Box::new("on purpose"));
                }),
            );
            assert!(receiver.recv().is_err());
        }
        assert_eq!(input.read_at(0, 5000).unwrap().len(), 5000);
        // Blocking in a completion is refused with a panic, which is also caught.
        let (sender, receiver) = mpsc::channel();
        let again = input.clone();
        input.submit_read(
            0,
            1,
            Box::new(move |_| {
                let read = std::panic::AssertUnwindSafe(|| again.read_at(0, 1));
                let refused = std::panic::catch_unwind(read).is_err();
                sender.send(refused).unwrap();
            }),
        );
        assert!(receiver.recv().unwrap());
    }
}
