//! Tables of what `fio` measured, and of it alongside an interference experiment.

use super::document::{Block, Document, Section, Table, cell};
use super::interference::{ArmReport, Figure, PointReport, Report};
use super::units::{mebibytes, milliseconds, significant};
use crate::fio::{FioJob, FioOutcome, Profile};
use crate::outcome::CompactionRecord;
use crate::stats::median;
use crate::text_table::count;

/// All tables as a document of their own.
pub fn document(fio: &FioOutcome, report: Option<&Report<'_>>) -> Document {
    Document {
        title: "fio".to_owned(),
        heading: "The device by itself",
        introduction: "Reads and writes of fio in the mix of a foreground load and a compaction, and the \
            most that the device gives.",
        sections: vec![Section {
            blocks: tables(fio, report),
            ..Section::default()
        }],
    }
}

/// All tables that are not empty, in comparison with the first point of a report if there is one.
pub(super) fn tables(fio: &FioOutcome, report: Option<&Report<'_>>) -> Vec<Block> {
    let mut all = vec![mixes(fio), ceilings(fio)];
    if let Some(point) = report.and_then(|report| report.points.first()) {
        all.push(by_arm(fio, point));
        all.extend(of_ceiling(fio, point));
    }
    all.push(failures(fio));
    all.into_iter().filter_map(Table::unless_empty).collect()
}

/// Profiles of one job, each with the name of that.
const CEILINGS: [(Profile, &str); 4] = [
    (Profile::CeilingSequentialRead, "sequential-read"),
    (Profile::CeilingSequentialWrite, "sequential-write"),
    (Profile::CeilingRandomRead4k, "random-read-4k"),
    (Profile::CeilingRandomRead16k, "random-read-16k"),
];

/// The foreground reads' job.
const READS: &str = "bystander";

/// The median over repeats of a number of a job; `None` without a run that has it.
fn middle(fio: &FioOutcome, (profile, job): Row<'_>, number: fn(&FioJob) -> f64) -> Option<f64> {
    let runs = fio.runs.iter().filter(|run| run.profile == profile);
    let numbers: Vec<f64> = runs.filter_map(|run| Some(number(run.job(job)?))).collect();
    median(&numbers)
}

type Row<'a> = (Profile, &'a str);
type Number = fn(&FioJob) -> f64;

fn name(row: &Row<'_>) -> String {
    row.0.to_string()
}

/// Column of the profiles' own jobs.
fn own(
    fio: &FioOutcome,
    number: Number,
    text: fn(f64) -> String,
) -> impl Fn(&Row<'_>) -> String + '_ {
    move |row| cell(middle(fio, *row, number), text)
}

/// Column of the number of runs that did not fail.
fn measured(fio: &FioOutcome) -> impl Fn(&Row<'_>) -> String + '_ {
    move |row| {
        let runs = fio.runs.iter().filter(|run| run.profile == row.0);
        runs.filter(|run| run.failure.is_none()).count().to_string()
    }
}

fn mixes(fio: &FioOutcome) -> Table {
    let options = &fio.options;
    let caption = format!(
        "{}: reads of 16 KiB from a hot file of {} MiB alongside streams that ask for {} MiB/s each way, ms; \
         what the streams got, MiB/s. A thread waits for its read, so that a p99 is a lower bound here",
        fio.fio_version,
        mebibytes(options.hot_bytes as f64),
        mebibytes(options.rate_bytes_per_s as f64),
    );
    let stream = |job: &'static str| {
        move |row: &Row<'_>| cell(middle(fio, (row.0, job), |job| job.bytes_per_s), mebibytes)
    };
    let mixes = options.profiles.iter().filter(|profile| profile.is_mix());
    Table::new(
        caption,
        mixes.map(|&profile| (profile, READS)),
        &[
            ("profile", &name),
            ("runs", &measured(fio)),
            ("reads/s", &own(fio, |job| job.requests_per_s, significant)),
            ("p50", &own(fio, |job| job.p50_ns, milliseconds)),
            ("p99", &own(fio, |job| job.p99_ns, milliseconds)),
            ("p99.9", &own(fio, |job| job.p999_ns, milliseconds)),
            ("max", &own(fio, |job| job.max_ns, milliseconds)),
            ("read", &stream("compaction-input")),
            ("written", &stream("compaction-output")),
        ],
    )
}

fn ceilings(fio: &FioOutcome) -> Table {
    let requests: fn(f64) -> String = |number| count(number.round() as u64);
    let profiles = &fio.options.profiles;
    Table::new(
        "What the device gives past the page cache with nothing alongside, 16 to 64 requests in flight",
        CEILINGS.into_iter().filter(|row| profiles.contains(&row.0)),
        &[
            ("profile", &name),
            ("runs", &measured(fio)),
            ("MiB/s", &own(fio, |job| job.bytes_per_s, mebibytes)),
            ("requests/s", &own(fio, |job| job.requests_per_s, requests)),
            ("p50 ms", &own(fio, |job| job.p50_ns, milliseconds)),
            ("p99 ms", &own(fio, |job| job.p99_ns, milliseconds)),
        ],
    )
}

/// Arms and the profiles that do the same.
fn by_arm(fio: &FioOutcome, point: &PointReport<'_>) -> Table {
    let same = |&profile: &Profile| {
        let name = profile.arm()?;
        let arm = point.arms.iter().find(|a| a.arm.to_string() == name)?;
        Some((arm, profile))
    };
    type Pair<'a> = (&'a ArmReport, Profile);
    Table::new(
        "The same with SSTables and with fio: p99 of reads, ms, and bytes read per second, MiB/s. Hot \
         sets, rates and read sizes are each one's own; compare shapes, not digits",
        fio.options.profiles.iter().filter_map(same),
        &[
            ("arm", &|(arm, _): &Pair<'_>| arm.arm.to_string()),
            ("p99", &|(arm, _)| {
                cell(arm.figure(Figure::P99Ns), |s| milliseconds(s.median))
            }),
            ("fio p99", &|(_, profile)| {
                cell(
                    middle(fio, (*profile, READS), |job| job.p99_ns),
                    milliseconds,
                )
            }),
            ("read", &|(arm, _)| {
                cell(rates(point, arm).map(|rates| rates.0), mebibytes)
            }),
            ("fio read", &|(_, profile)| {
                let read = middle(fio, (*profile, "compaction-input"), |job| job.bytes_per_s);
                cell(read, mebibytes)
            }),
        ],
    )
}

/// Bytes per second that an arm's compaction read and wrote on disk, medians.
fn rates(point: &PointReport<'_>, arm: &ArmReport) -> Option<(f64, f64)> {
    let runs = point.point.runs.iter();
    let runs = runs.filter(|run| run.arm == arm.arm && run.attempt.counts());
    let compactions: Vec<_> = runs.filter_map(|run| run.compaction.as_ref()).collect();
    let per_second = |bytes: fn(&CompactionRecord) -> u64| {
        let rates = compactions.iter().map(|c| bytes(c) as f64 / c.elapsed_s);
        median(&rates.collect::<Vec<_>>())
    };
    Some((
        per_second(|c| c.input_bytes)?,
        per_second(|c| c.output_bytes)?,
    ))
}

/// Share of the device that a compaction used.
fn of_ceiling(fio: &FioOutcome, point: &PointReport<'_>) -> Option<Table> {
    let ceiling = |row| middle(fio, row, |job| job.bytes_per_s).filter(|rate| *rate > 0.0);
    let (read, written) = (ceiling(CEILINGS[0])?, ceiling(CEILINGS[1])?);
    let share = |rate: f64, ceiling: f64| format!("{}%", significant(100.0 * rate / ceiling));
    let arms = point.arms.iter();
    type Rates<'a> = (&'a ArmReport, (f64, f64));
    Some(Table::new(
        "Bytes on disk that the compaction read and wrote, MiB/s, and how much of the device's ceiling \
         that is",
        arms.filter_map(|arm| Some((arm, rates(point, arm)?))),
        &[
            ("arm", &|(arm, _): &Rates<'_>| arm.arm.to_string()),
            ("read", &|(_, rates)| mebibytes(rates.0)),
            ("of ceiling", &|(_, rates)| share(rates.0, read)),
            ("written", &|(_, rates)| mebibytes(rates.1)),
            ("of ceiling", &|(_, rates)| share(rates.1, written)),
        ],
    ))
}

fn failures(fio: &FioOutcome) -> Table {
    let failed = fio.runs.iter().filter_map(|run| {
        let name = format!("{} repeat {}", run.profile, run.repeat + 1);
        Some((name, run.failure.clone()?))
    });
    Table::prose("Profiles that failed", ["run", "reason"], failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::{FioOptions, FioRun};
    use crate::outcome::{End, Outcome};

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
            options: FioOptions::default(),
            end: End::Complete,
            runs: vec![
                run(
                    Profile::MixDirect,
                    vec![job("bystander", 30.0), job("compaction-input", 128.0)],
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
        let report = Report::new("", &outcome);
        let all: Vec<Table> = tables(&fio, Some(&report))
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
        let [mixes, ceilings, beside, used, failed] = &all[..] else {
            panic!("{all:?}");
        };
        assert_eq!(
            row(mixes, "mix-direct"),
            "1 2000 0.100 2.00 3.00 4.00 128 –"
        );
        assert_eq!(row(mixes, "mix-uncached"), "0 – – – – – – –");
        assert_eq!(
            row(ceilings, "ceiling-sequential-read"),
            "1 640 2,000 0.100 2.00"
        );
        // 384 MiB of inputs in 6 s.
        assert_eq!(row(beside, "direct/direct"), "0.436 2.00 64.0 128");
        assert!(
            row(used, "direct/direct").starts_with("64.0 10.0% "),
            "{used:?}"
        );
        assert_eq!(failed.rows.len(), 1);
        assert_eq!(tables(&fio, None).len(), 3);
    }
}
