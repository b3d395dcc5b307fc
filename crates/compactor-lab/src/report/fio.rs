//! Report of what `fio` measured, and of it alongside an interference experiment.

use serde_json::json;

use super::Report;
use super::document::{Block, Section, Table, cell};
use super::interference::figures::{self, IDLE, P50, P99, P999};
use super::units::{mebibytes, significant};
use crate::comparison::{ArmFigures, Comparison, Measured};
use crate::experiment::Experiment;
use crate::figure::{Figure, Unit};
use crate::fio::{FioOutcome, FioRun, Profile};
use crate::outcome::{Attempt, Outcome, Warning};
use crate::report::arm_table::Column;

/// Requests per second of the foreground load, or of a ceiling's only job; so are the latencies.
const REQUESTS_PER_S: Figure = Figure::higher("requests_per_s", "requests/s", Unit::Count);
const MAX: Figure = Figure::new("max_ns", "max", Unit::Milliseconds);
/// Bytes per second of a ceiling's only job.
const RATE: Figure = Figure::higher("bytes_per_s", "MiB/s", Unit::Mebibytes);
/// Bytes per second that the compaction's stream read.
const READ: Figure = Figure::new("read_bytes_per_s", "read", Unit::Mebibytes);
/// Bytes per second that the compaction's stream wrote.
const WRITTEN: Figure = Figure::new("written_bytes_per_s", "written", Unit::Mebibytes);

static EXPERIMENT: Experiment = Experiment {
    title: "fio",
    heading: "The device by itself",
    introduction: "Reads and writes of fio in the mix of a foreground load and a compaction, and the ceilings \
        of the device.",
    arm: "profile",
    headline: P99,
    baseline: IDLE,
};

/// The report of an outcome, in comparison with the first point of an interference experiment if there is one.
pub fn report(fio: &FioOutcome, interference: Option<&Outcome>) -> Report {
    let first = interference.and_then(|outcome| Some((outcome, outcome.points.first()?)));
    let arms = first.map(|(outcome, point)| figures::compare(outcome, point));
    let points = [true, false].map(|is_mix| (json!({ "mixes": is_mix }), compare(fio, is_mix)));
    let section = Section {
        blocks: tables(fio, arms.as_ref()),
        ..Section::default()
    };
    Report {
        // Not every machine has what every profile needs.
        is_sound: fio.runs.iter().any(|run| run.failure.is_none()),
        ..Report::new(&EXPERIMENT, fio.end, points, &[], section)
    }
}

/// Compares the mixes, or the ceilings.
fn compare(fio: &FioOutcome, is_mix: bool) -> Comparison {
    let profiles = fio.options.profiles.iter().filter(|p| p.is_mix() == is_mix);
    let runs = fio.runs.iter().filter(|run| run.profile.is_mix() == is_mix);
    let arms = profiles.map(Profile::to_string);
    let idle = [(IDLE, Profile::Foreground.to_string())];
    Comparison::new(&EXPERIMENT, arms, idle, 1, runs.map(measured))
}

/// A run with its figures.
pub(crate) fn measured(run: &FioRun) -> Measured {
    let failure = run
        .failure
        .as_ref()
        .map(|reason| Warning::new("failed", reason));
    let mut figures = Vec::new();
    for job in &run.jobs {
        match job.name.as_str() {
            "compaction-input" => figures.push((READ, job.bytes_per_s)),
            "compaction-output" => figures.push((WRITTEN, job.bytes_per_s)),
            _ => figures.extend([
                (REQUESTS_PER_S, job.requests_per_s),
                (RATE, job.bytes_per_s),
                (P50, job.p50_ns),
                (P99, job.p99_ns),
                (P999, job.p999_ns),
                (MAX, job.max_ns),
            ]),
        }
    }
    Measured {
        arm: run.profile.to_string(),
        attempt: Attempt {
            repeat: run.repeat,
            invalid: failure.into_iter().collect(),
            ..Attempt::default()
        },
        figures,
    }
}

/// All tables that are not empty, in comparison with the arms of an interference experiment.
pub(super) fn tables(fio: &FioOutcome, arms: Option<&Comparison>) -> Vec<Block> {
    let [mixes, ceilings] = [true, false].map(|is_mix| compare(fio, is_mix));
    let options = &fio.options;
    let caption = format!(
        "{}: reads of 16 KiB from a hot file of {} MiB alongside streams that ask for {} MiB/s each way, ms; \
         what the streams got, MiB/s. A thread waits for its read, so that a p99 is a lower bound here",
        fio.fio_version,
        mebibytes(options.hot_bytes as f64),
        mebibytes(options.rate_bytes_per_s as f64),
    );
    let median = Column::Median;
    let of_mixes = [
        Column::Runs,
        median(REQUESTS_PER_S),
        median(P50),
        median(P99),
        Column::Ratio(P99, IDLE),
        median(P999),
        median(MAX),
        median(READ),
        median(WRITTEN),
    ];
    let of_ceilings = [
        Column::Runs,
        median(RATE),
        median(REQUESTS_PER_S),
        median(P50),
        median(P99),
    ];
    let mut all = vec![
        Some(mixes.table(caption, &of_mixes)),
        Some(ceilings.table(
            "Ceilings of the device without the page cache, with nothing alongside, 16 to 64 requests in flight; \
             latencies in ms",
            &of_ceilings,
        )),
    ];
    if let Some(arms) = arms {
        all.push(Some(by_arm(&mixes, arms)));
        all.push(of_ceiling(&ceilings, arms));
    }
    let tables = all.into_iter().flatten().filter_map(Table::unless_empty);
    let mut blocks: Vec<Block> = tables.collect();
    for comparison in [&mixes, &ceilings] {
        blocks.extend(comparison.left_out_table());
    }
    blocks
}

/// Arms of the interference experiment, and the profiles that do the same.
fn by_arm(mixes: &Comparison, arms: &Comparison) -> Table {
    let same = |profile: &Profile| {
        let arm = arms
            .arms
            .iter()
            .find(|arm| Some(arm.arm.as_str()) == profile.arm())?;
        Some((
            arm,
            mixes.arms.iter().find(|arm| arm.arm == profile.name())?,
        ))
    };
    type Pair<'a> = (&'a ArmFigures, &'a ArmFigures);
    let text = |arm: &ArmFigures, figure: Figure| {
        cell(arm.median(figure), |median| figure.unit.text(median))
    };
    Table::new(
        "The same with SSTables and with fio: p99 of reads, ms, and bytes read per second, MiB/s. Hot sets, \
         rates and read sizes differ: compare the order of arms, not the numbers",
        Profile::ALL.iter().filter_map(same),
        &[
            ("arm", &|(arm, _): &Pair<'_>| arm.arm.clone()),
            ("p99", &|(arm, _)| text(arm, P99)),
            ("fio p99", &|(_, profile)| text(profile, P99)),
            ("read", &|(arm, _)| text(arm, figures::DISK_READ_RATE)),
            ("fio read", &|(_, profile)| text(profile, READ)),
        ],
    )
}

/// Share of the device's ceiling that a compaction used; `None` without ceilings.
fn of_ceiling(ceilings: &Comparison, arms: &Comparison) -> Option<Table> {
    let ceiling = |profile: Profile| {
        let rate = ceilings.counted(profile.name())?.median(RATE);
        rate.filter(|rate| *rate > 0.0)
    };
    let read = ceiling(Profile::CeilingSequentialRead)?;
    let written = ceiling(Profile::CeilingSequentialWrite)?;
    let rates = |arm| {
        let of = |figure| ArmFigures::median(arm, figure);
        Some((
            arm,
            [of(figures::DISK_READ_RATE)?, of(figures::DISK_WRITE_RATE)?],
        ))
    };
    let share = |rate: f64, ceiling: f64| format!("{}%", significant(100.0 * rate / ceiling));
    type Rates<'a> = (&'a ArmFigures, [f64; 2]);
    Some(Table::new(
        "Bytes on disk that the compaction read and wrote, MiB/s, and their share of the device's ceiling",
        arms.arms.iter().filter_map(rates),
        &[
            ("arm", &|(arm, _): &Rates<'_>| arm.arm.clone()),
            ("read", &|(_, rates)| mebibytes(rates[0])),
            ("of ceiling", &|(_, rates)| share(rates[0], read)),
            ("written", &|(_, rates)| mebibytes(rates[1])),
            ("of ceiling", &|(_, rates)| share(rates[1], written)),
        ],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::{FioJob, FioOptions};
    use crate::outcome::End;

    fn job(name: &str, mebibytes_per_s: f64) -> FioJob {
        FioJob {
            name: name.to_owned(),
            bytes_per_s: mebibytes_per_s * f64::from(1 << 20),
            requests_per_s: 2000.0,
            mean_ns: 1e5,
            p50_ns: 1e5,
            p99_ns: 2e6,
            p999_ns: 3e6,
            max_ns: 4e6,
        }
    }

    #[test]
    fn the_device_and_the_program() {
        let run = |profile, jobs, failure: Option<&str>| FioRun {
            profile,
            repeat: 0,
            jobs,
            failure: failure.map(str::to_owned),
        };
        let fio = FioOutcome {
            fio_version: "fio-3.33".to_owned(),
            directory: "/data".to_owned(),
            options: FioOptions {
                profiles: Profile::ALL.to_vec(),
                repeats: 1,
                hot_bytes: 1 << 30,
                input_bytes: 8 << 30,
                rate_bytes_per_s: 128 << 20,
                reads_per_thread: 250,
                runtime_s: 60,
            },
            end: End::Complete,
            runs: vec![
                run(
                    Profile::MixDirect,
                    vec![job("foreground", 30.0), job("compaction-input", 128.0)],
                    None,
                ),
                run(
                    Profile::MixUncached,
                    vec![],
                    Some("fio failed: Operation not supported"),
                ),
                run(
                    Profile::CeilingSequentialRead,
                    vec![job("sequential-read", 640.0)],
                    None,
                ),
                run(
                    Profile::CeilingSequentialWrite,
                    vec![job("sequential-write", 320.0)],
                    None,
                ),
            ],
        };
        let example = include_str!("../../tests/data/outcome.json");
        let outcome: Outcome = serde_json::from_str(example).unwrap();
        let arms = figures::compare(&outcome, &outcome.points[0]);
        let all: Vec<Table> = tables(&fio, Some(&arms))
            .into_iter()
            .map(|block| match block {
                Block::Table(table) => table,
                other => panic!("{other:?}"),
            })
            .collect();
        let row = |table: &Table, name: &str| {
            let mut rows = table.rows.iter();
            rows.find(|row| row[0] == name).unwrap()[1..].join(" ")
        };
        let [mixes, ceilings, compared, used, failed] = &all[..] else {
            panic!("{all:?}");
        };
        assert_eq!(
            row(mixes, "mix-direct"),
            "1 2,000 0.100 2.00 3.00 4.00 128 –"
        );
        assert_eq!(row(mixes, "mix-uncached"), "0 of 1 – – – – – – –");
        assert_eq!(
            row(ceilings, "ceiling-sequential-read"),
            "1 640 2,000 0.100 2.00"
        );
        // 384 MiB of inputs in 6 s.
        assert_eq!(row(compared, "direct/direct"), "0.436 2.00 64.0 128");
        assert!(
            row(used, "direct/direct").starts_with("64.0 10.0% "),
            "{used:?}"
        );
        assert_eq!(failed.rows.len(), 1);
        assert_eq!(tables(&fio, None).len(), 3);
    }
}
