//! All damage is found, and no content causes a panic, a hang or an excessive allocation.

use std::time::{Duration, Instant};

use crate::support::damage::Copy;
use crate::support::sstable;
use compactor::NoObserver;
use compactor::verify::{Severity, VerifyOptions, VerifyReport, verify};
use compactor_io::{BackendKind, Io, IoOptions, ReadMode};
use compactor_sstable::Component;
use compactor_testkit::{Random, campaign};

/// One of each version and of each kind of component.
const SSTABLES: [&str; 7] = [
    "nb-range_nested/inputs/1",
    "nb-statics/inputs/1",
    "oa-ttl_ties/inputs/1",
    "oa-wide_uncompressed/inputs/2",
    "pa-range_nested/compacted",
    "pa-complex_ties/inputs/1",
    "pa-incompressible_chunks/inputs/1",
];
/// Maximum number of bits flipped in a component, including bits of the first, middle and last bytes.
const FLIPS: usize = 56;
/// Maximum time to verify a damaged file of these sizes.
const PATIENCE: Duration = Duration::from_secs(10);

struct Verifier(Io);

impl Verifier {
    fn new() -> Verifier {
        let options = IoOptions {
            backend: BackendKind::Threads,
            ..IoOptions::default()
        };
        Verifier(Io::new(options).unwrap())
    }

    fn verify(&self, copy: &Copy) -> VerifyReport {
        self.with(copy, &options())
    }

    fn with(&self, copy: &Copy, options: &VerifyOptions) -> VerifyReport {
        let started = Instant::now();
        let report = verify(&self.0, &copy.data(), options, &mut NoObserver).unwrap();
        assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
        report
    }
}

fn options() -> VerifyOptions {
    let mut options = VerifyOptions::default();
    options.read_mode = ReadMode::Buffered;
    options
}

/// Bytes that may change without anything else in the SSTable contradicting them.
fn is_undetectable(place: &str, component: Component, at: usize) -> bool {
    match component {
        // The payload length from which chunks are stored uncompressed: matters only if a chunk has
        // such a length.
        Component::CompressionInfo => {
            place == "pa-incompressible_chunks/inputs/1" && (23..27).contains(&at)
        }
        _ => false,
    }
}

/// The sampling interval of a summary with one sample, which only the table's schema can contradict:
/// Cassandra then rebuilds the summary.
fn is_index_interval(component: Component, at: usize) -> bool {
    component == Component::Summary && at < 4
}

/// Each bit of the sampling interval, also with a single sample.
#[test]
fn every_bit_of_the_index_interval_is_checked() {
    let verifier = Verifier::new();
    for place in SSTABLES {
        let copy = Copy::of(&sstable(place));
        if !copy.path(Component::Summary).exists() {
            continue;
        }
        let intact = copy.read(Component::Summary);
        for bit in 0..32 {
            copy.flip(Component::Summary, bit / 8, (bit % 8) as u8);
            let report = verifier.verify(&copy);
            copy.write(Component::Summary, &intact);
            let [finding] = &report.findings[..] else {
                panic!("{place} bit {bit}: {:#?}", report.findings);
            };
            assert_eq!(finding.structure, "summary.min_index_interval");
            // 0 and negative intervals are invalid.
            let is_none = matches!(bit, 7 | 31);
            assert_eq!(report.is_damaged(), is_none, "{place} bit {bit}: {finding}");
        }
    }
}

#[test]
fn a_flipped_bit_in_any_component_is_found() {
    let verifier = Verifier::new();
    let mut missed = Vec::new();
    for place in SSTABLES {
        let copy = Copy::of(&sstable(place));
        assert!(verifier.verify(&copy).findings.is_empty(), "{place}");
        for component in copy.components() {
            let intact = copy.read(component);
            let len = intact.len();
            // An odd step, so that every bit of a byte is flipped.
            let stride = ((8 * len / FLIPS).max(1) * campaign::stride()) | 1;
            let ends = [0, 1, len / 2, len.saturating_sub(2), len - 1];
            let all = (0..8 * len).step_by(stride);
            let bits = ends
                .iter()
                .flat_map(|at| (0..8).map(move |bit| 8 * at + bit))
                .chain(all);
            for bit in bits {
                let (at, bit) = (bit / 8, (bit % 8) as u8);
                copy.flip(component, at, bit);
                let report = verifier.verify(&copy);
                copy.write(component, &intact);
                let is_found = match component {
                    // Cassandra opens the components that exist, whether they are listed or not. The last line
                    // needs no line feed.
                    Component::Toc => !report.findings.is_empty() || at == len - 1,
                    _ if is_index_interval(component, at) => !report.findings.is_empty(),
                    _ => report.is_damaged(),
                };
                if !is_found && !is_undetectable(place, component, at) {
                    missed.push(format!(
                        "{place} {component} byte {at} of {len}, bit {bit}: {:02x}, {:#?}",
                        intact[at], report.findings
                    ));
                }
            }
        }
    }
    assert!(
        missed.is_empty(),
        "{} missed\n{}",
        missed.len(),
        missed.join("\n")
    );
}

#[test]
fn every_bit_missing_from_a_filter_is_damage() {
    let verifier = Verifier::new();
    let copy = Copy::of(&sstable("oa-range_nested/inputs/1"));
    let intact = copy.read(Component::Filter);
    let mut tried = 0;
    for at in 8..intact.len() {
        for bit in (0..8).filter(|bit| intact[at] & (1 << bit) != 0) {
            copy.flip(Component::Filter, at, bit);
            let report = verifier.verify(&copy);
            let finding = &report.findings[0];
            assert_eq!(finding.severity, Severity::Damage);
            assert_eq!(finding.structure, "filter.bits");
            assert!(finding.partition.is_some());
            copy.write(Component::Filter, &intact);
            tried += 1;
        }
    }
    assert!(tried > 0);
}

#[test]
fn a_truncated_component_is_found() {
    let verifier = Verifier::new();
    for place in SSTABLES {
        let copy = Copy::of(&sstable(place));
        for component in copy.components() {
            let intact = copy.read(component);
            let len = intact.len();
            let stride = (len / 60).max(1);
            for cut in (0..len).step_by(stride).chain([len / 2, len - 1]) {
                copy.truncate(component, cut);
                let report = verifier.verify(&copy);
                copy.write(component, &intact);
                // A TOC that lists other files is not damage of the existing ones.
                assert_eq!(
                    report.is_damaged(),
                    component != Component::Toc,
                    "{place} {component} {cut} of {len}"
                );
            }
        }
    }
}

#[test]
fn trailing_bytes_are_found() {
    let verifier = Verifier::new();
    for place in SSTABLES {
        let copy = Copy::of(&sstable(place));
        for component in copy.components() {
            if [Component::Toc, Component::Digest].contains(&component) {
                // Lines may follow.
                continue;
            }
            let intact = copy.read(component);
            for more in [&[0][..], &[0; 4096]] {
                copy.edit(component, |bytes| bytes.extend_from_slice(more));
                let report = verifier.verify(&copy);
                copy.write(component, &intact);
                // No reader before 6.0 reads them.
                let is_unread = component == Component::CompressionInfo && !place.starts_with("pa");
                assert!(
                    report.is_damaged() != is_unread && !report.findings.is_empty(),
                    "{place} {component} and {} bytes",
                    more.len()
                );
            }
        }
    }
}

#[test]
fn a_missing_component_is_found() {
    let verifier = Verifier::new();
    for place in SSTABLES {
        let original = sstable(place);
        for component in Copy::of(&original).components() {
            let copy = Copy::of(&original);
            copy.remove(component);
            let report = verifier.verify(&copy);
            // Cassandra rebuilds these or does not need them.
            let optional = [
                Component::Filter,
                Component::Summary,
                Component::Digest,
                Component::Crc,
                Component::Toc,
            ]
            .contains(&component);
            assert_eq!(
                report.is_damaged(),
                !optional,
                "{place} without {component}"
            );
            assert_eq!(report.stops_merge, !optional);
            let names = |f: &compactor::verify::Finding| f.component == component;
            assert!(
                report.findings.iter().any(names),
                "{place} {component}: {report:#?}"
            );

            let copy = Copy::of(&original);
            if component == Component::Toc {
                continue;
            }
            copy.remove_and_unlist(component);
            let report = verifier.verify(&copy);
            assert_eq!(
                report.is_damaged(),
                !optional,
                "{place} without {component}: {report:#?}"
            );
            assert!(!report.findings.is_empty(), "{place} without {component}");
        }
    }
}

/// Components of two SSTables of one table, exchanged: each is intact by itself.
#[test]
fn a_component_of_another_sstable_is_found() {
    let verifier = Verifier::new();
    let pairs = [
        ("nb-range_nested/inputs/1", "nb-range_nested/inputs/3"),
        ("nb-range_nested/inputs/3", "nb-range_nested/compacted"),
        ("oa-range_nested/inputs/1", "oa-range_nested/inputs/3"),
        ("pa-range_nested/compacted", "pa-range_nested/inputs/2"),
        ("oa-range_nested/inputs/2", "pa-range_nested/inputs/3"),
    ];
    let mut missed = Vec::new();
    for (into, from) in pairs {
        let (into_path, other) = (sstable(into), Copy::of(&sstable(from)));
        for component in other.components() {
            let copy = Copy::of(&into_path);
            let bytes = other.read(component);
            if copy.read(component) == bytes {
                continue;
            }
            copy.write(component, &bytes);
            let report = verifier.verify(&copy);
            if !report.is_damaged() {
                missed.push(format!(
                    "{component} of {from} in {into}: {:#?}",
                    report.findings
                ));
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Absurd numbers in length and count fields are not trusted.
#[test]
fn absurd_numbers_anywhere_end_quickly() {
    let verifier = Verifier::new();
    let patterns: [&[u8]; 3] = [
        &[0x7f, 0xff, 0xff, 0xff],
        &[0xff; 4],
        // A vint: 2^63 - 1.
        &[0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    ];
    let mut changes = 0;
    for place in ["nb-range_nested/inputs/3", "oa-wide_uncompressed/inputs/2"] {
        let copy = Copy::of(&sstable(place));
        for component in copy.components() {
            let mut len = copy.read(component).len();
            if component == Component::Data {
                copy.edit_content(|bytes| len = bytes.len());
            }
            let intact: Vec<(Component, Vec<u8>)> = copy
                .components()
                .into_iter()
                .map(|c| (c, copy.read(c)))
                .collect();
            for at in campaign::some_of(places(component, len)) {
                for pattern in patterns {
                    let put = |bytes: &mut Vec<u8>| {
                        let end = (at + pattern.len()).min(bytes.len());
                        bytes[at..end].copy_from_slice(&pattern[..end - at]);
                    };
                    match component {
                        Component::Data => copy.edit_content(put),
                        _ => copy.edit(component, put),
                    }
                    if component == Component::Statistics {
                        copy.fix_statistics();
                    }
                    // Whether it is damage depends on what the number was; an unreadable version or
                    // partitioner is an error.
                    let started = Instant::now();
                    let _ = verify(&verifier.0, &copy.data(), &options(), &mut NoObserver);
                    assert!(
                        started.elapsed() < PATIENCE,
                        "{place} {component} {at} {pattern:02x?}"
                    );
                    for (touched, bytes) in &intact {
                        if *touched == component || component == Component::Data {
                            copy.write(*touched, bytes);
                        }
                    }
                    changes += 1;
                }
            }
        }
    }
    let least = if campaign::stride() == 1 { 1000 } else { 250 };
    assert!(changes > least, "{changes}");
    let peak = compactor::process::Usage::now().peak_rss_bytes;
    assert!(
        peak < 512 << 20,
        "{peak} bytes of memory for files of 60 KB"
    );
}

/// Offsets where a length may be stored: all of small components, and many of the others.
fn places(component: Component, len: usize) -> impl Iterator<Item = usize> {
    let (head, stride) = match component {
        // The histograms fill most of it, after the lengths and before the rest.
        Component::Statistics => (64, 211),
        Component::Data => (64, 997),
        _ => (200, 17),
    };
    let tail = if component == Component::Statistics {
        330
    } else {
        16
    };
    (0..len).filter(move |&at| at < head || at + tail >= len || at % stride == 0)
}

/// Random changes with valid checksums never panic, and the original is clean again after the change is undone.
#[test]
fn random_changes_never_panic() {
    let verifier = Verifier::new();
    let rounds = campaign::cases(40);
    let seed = campaign::first_seed();
    println!("COMPACTOR_TEST_SEED={seed}, {rounds} rounds");
    let mut random = Random::new(seed);
    let mut random = move |end: usize| random.index(end.max(1));
    for place in SSTABLES {
        let original = sstable(place);
        for _ in 0..rounds {
            let copy = Copy::of(&original);
            let mut change = |bytes: &mut Vec<u8>| {
                for _ in 0..=random(3) {
                    let at = random(bytes.len());
                    match random(5) {
                        0 => bytes[at] = random(256) as u8,
                        1 => bytes[at] ^= 1 << random(8),
                        2 => drop(bytes.drain(at..(at + random(9)).min(bytes.len()))),
                        3 => bytes.insert(at, random(256) as u8),
                        _ => {
                            let end = (at + random(40)).min(bytes.len());
                            bytes.extend_from_within(at..end);
                        }
                    }
                    if bytes.is_empty() {
                        bytes.push(0);
                    }
                }
            };
            copy.edit_content(&mut change);
            for component in [Component::Index, Component::Statistics, Component::Summary] {
                copy.edit(component, &mut change);
            }
            copy.fix_statistics();
            let started = Instant::now();
            // A file that names another partitioner is an error.
            let _ = verify(&verifier.0, &copy.data(), &options(), &mut NoObserver);
            assert!(started.elapsed() < PATIENCE, "{place}");
            let copy = Copy::of(&original);
            copy.edit_content(change);
            verifier.verify(&copy);
        }
        let copy = Copy::of(&original);
        copy.edit_content(|_| {});
        let report = verifier.verify(&copy);
        assert!(!report.is_damaged(), "{place}: {report:#?}");
    }
}
