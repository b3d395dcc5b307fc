//! Our scrub of damaged SSTables: Cassandra's verifier accepts its output, which holds exactly the rows that are not
//! reported as lost, and Cassandra's own scrub salvages no others.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use compactor::scrub::{ScrubOptions, ScrubReport, scrub};
use compactor::{ErrorKind, NoObserver};
use compactor_engine::input::Scan;
use compactor_io::{Io, IoOptions, ReadMode};
use compactor_sstable::schema::Schema;
use compactor_testkit::campaign;
use interop::cases::Case;
use interop::scenarios;
use interop::{Cassandra, Mode, files};

use crate::support::{Failures, last_use_of_server};

const SCENARIOS: [&str; 11] = [
    "counters",
    "single_input",
    "many_small",
    "statics",
    "range_touching",
    "range_prefix",
    "wide_static",
    "wide_prefix_ranges",
    "wide_uncompressed",
    "udt_grown",
    "dropped_types",
];

#[test]
fn pa() {
    damaged(Mode::Pa);
}

#[test]
fn nb() {
    if !campaign::is_full() {
        return;
    }
    damaged(Mode::Nb);
}

/// Ways to damage the file of this suffix.
struct Damage {
    name: &'static str,
    suffix: &'static str,
    apply: fn(&mut Vec<u8>),
}

const DAMAGES: [Damage; 6] = [
    Damage {
        name: "none",
        suffix: "Data.db",
        apply: |_| {},
    },
    Damage {
        name: "a bit in the middle",
        suffix: "Data.db",
        apply: |bytes| {
            let at = bytes.len() / 2;
            bytes[at] ^= 4;
        },
    },
    Damage {
        name: "three bits",
        suffix: "Data.db",
        apply: |bytes| {
            for part in 1..4 {
                let at = bytes.len() * part / 4 - 1;
                bytes[at] ^= 1;
            }
        },
    },
    Damage {
        name: "the end cut off",
        suffix: "Data.db",
        apply: |bytes| bytes.truncate(bytes.len() * 3 / 4),
    },
    Damage {
        name: "zeroes",
        suffix: "Data.db",
        apply: |bytes| {
            let (from, to) = (bytes.len() / 5, bytes.len() / 3);
            bytes[from..to].fill(0);
        },
    },
    Damage {
        name: "half an index",
        suffix: "Index.db",
        apply: |bytes| bytes.truncate(bytes.len() / 2),
    },
];

fn damaged(mode: Mode) {
    let Some(mut cassandra) = last_use_of_server(mode) else {
        return;
    };
    let mut failures = Failures::default();
    for name in campaign::some_of(SCENARIOS) {
        let scenario = scenarios::selected()
            .into_iter()
            .find(|scenario| scenario.name == name && scenario.modes.contains(&mode));
        let Some(scenario) = scenario else { continue };
        let place = tempfile::tempdir().expect("a temporary directory");
        let case =
            Case::prepare(&mut cassandra, &scenario, &place.path().join("inputs")).expect("inputs");
        let compacted = case
            .compact(&mut cassandra, &place.path().join("compacted"))
            .expect("compaction");
        let Some(data) = compacted.outputs.first() else {
            continue;
        };
        for damage in &DAMAGES {
            let is_counter_table = name.contains("counter");
            let found = one(&mut cassandra, &case, data, damage, is_counter_table);
            failures.add(format_args!("{mode}/{name}, {}", damage.name), found);
        }
    }
    failures.check();
}

fn one(
    cassandra: &mut Cassandra,
    case: &Case,
    intact: &Path,
    damage: &Damage,
    is_counter_table: bool,
) -> Result<Vec<String>> {
    let place = tempfile::tempdir()?;
    let data = files::copy(intact, &place.path().join("damaged"))?;
    let victim = files::component(&data, damage.suffix);
    let mut bytes = fs::read(&victim)?;
    (damage.apply)(&mut bytes);
    fs::write(&victim, bytes)?;

    let mut failures = Vec::new();
    let io = Io::new(IoOptions::default())?;
    let mut options = ScrubOptions::new(place.path().join("ours"));
    options.max_losses = usize::MAX;
    // The header gets the types of the schema.
    if let Some(path) = &case.schema {
        let schema = Schema::parse(&fs::read_to_string(path)?)?;
        options.output.table = Some(schema.only_table()?.clone());
    }
    let mut scrubbed = scrub(&io, &data, &options, &mut NoObserver);
    if let Err(error) = &scrubbed
        && error.kind() == ErrorKind::Refused
    {
        ensure!(is_counter_table, "refused: {error}");
        ensure!(
            !options.output.output_directory.exists(),
            "something was written"
        );
        options.skip_corrupted = true;
        scrubbed = scrub(&io, &data, &options, &mut NoObserver);
    } else if let Ok(report) = &scrubbed {
        ensure!(
            !(is_counter_table && report.is_lossy()),
            "counters were dropped without skip_corrupted"
        );
    }
    let report = scrubbed?;
    if damage.name == "none" || damage.suffix != "Data.db" {
        ensure!(!report.is_lossy(), "something was lost: {report:#?}");
    }
    let mut ours = BTreeSet::new();
    if let Some(output) = &report.output {
        let found = cassandra.verify(&case.table, &output.data_path)?;
        failures.extend(found.iter().map(ToString::to_string));
        let dump = cassandra.dump(&case.table, &output.data_path)?;
        ours = rows(&dump).map(|(row, _)| row).collect();
    }
    let dump = cassandra.dump(&case.table, intact)?;
    let expected = not_lost(&io, intact, &dump, &report)?;
    failures.extend(expected.difference(&ours).map(|r| format!("missing: {r}")));
    failures.extend(
        ours.difference(&expected)
            .map(|r| format!("unexpected: {r}")),
    );

    match cassandra.scrub(&case.table, &data, &place.path().join("theirs")) {
        Ok(outputs) => {
            for output in outputs {
                let dump = cassandra.dump(&case.table, &output)?;
                let theirs: BTreeSet<String> = rows(&dump).map(|(row, _)| row).collect();
                let more = theirs.difference(&ours);
                failures.extend(more.map(|r| format!("only Cassandra salvages {r}")));
            }
        }
        // Cassandra does not open some damaged SSTables.
        Err(error) => println!("{}: Cassandra's scrub: {error:#}", damage.name),
    }
    Ok(failures)
}

/// Rows and static rows of a dump, each with its partition and its line number, not counting lines of partitions.
fn rows(dump: &str) -> impl Iterator<Item = (String, usize)> {
    let mut partition = "";
    let mut number = 0;
    dump.lines().filter_map(move |line| {
        if line.contains("\"kind\":\"partition\"") {
            partition = line;
            return None;
        }
        number += 1;
        let key = partition.split("\"deletion\"").next().unwrap_or_default();
        (!line.contains("\"kind\":\"marker\"")).then(|| (format!("{key} {line}"), number - 1))
    })
}

/// Rows of the intact SSTable outside all reported losses.
fn not_lost(io: &Io, intact: &Path, dump: &str, report: &ScrubReport) -> Result<BTreeSet<String>> {
    let mut places = Vec::new();
    let mut scan = Scan::open(io, intact, ReadMode::Auto)?;
    let cursor = scan.cursor();
    while cursor.next_partition()? {
        if let Some(row) = cursor.static_row()
            && !row.read().map_err(compactor::Error::from)?.start.is_empty()
        {
            places.push((cursor.position(), row.head.len as u64));
        }
        loop {
            cursor.next_unfiltered()?;
            let len = match (cursor.row(), cursor.marker()) {
                (Some(row), _) => row.head.len,
                (_, Some(marker)) => marker.len,
                (None, None) => break,
            };
            places.push((cursor.position(), len as u64));
        }
    }
    let is_lost = |&(position, len): &(u64, u64)| {
        // The scrub cannot know what followed the end of an uncompressed file that was cut off.
        position >= report.uncompressed_bytes
            || report
                .losses
                .iter()
                .any(|l| l.position < position + len && position < l.position + l.bytes)
    };
    rows(dump)
        .map(|(row, number)| Ok((row, places.get(number).context("fewer rows than lines")?)))
        .filter(|row| row.as_ref().map_or(true, |(_, place)| !is_lost(place)))
        .map(|row| row.map(|(row, _)| row))
        .collect()
}
