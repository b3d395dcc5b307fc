//! Tables of what `fio` measured, and of it beside an experiment.

use super::table::Table;
use super::units::{NONE, mebibytes, milliseconds, significant};
use super::{Figure, PointReport, Report};
use crate::fio::{FioJob, FioOutcome, FioRun, Profile};
use crate::stats::median;
use crate::text_table::count;

/// All that there is to show, beside the first point of a report if there is one.
pub fn tables(fio: &FioOutcome, report: Option<&Report<'_>>) -> Vec<Table> {
    let mut all: Vec<Table> = [mixes(fio), ceilings(fio)].into_iter().flatten().collect();
    if let Some(point) = report.and_then(|report| report.points.first()) {
        all.extend(beside(fio, point));
        all.extend(of_ceiling(fio, point));
    }
    all.extend(failures(fio));
    all
}

/// The median over repeats of a number of a job; `None` without a run that has it.
fn middle(
    fio: &FioOutcome,
    profile: Profile,
    job: &str,
    number: impl Fn(&FioJob) -> f64,
) -> Option<f64> {
    let runs = fio.runs.iter().filter(|run| run.profile == profile);
    let numbers: Vec<f64> = runs.filter_map(|run| Some(number(run.job(job)?))).collect();
    median(&numbers)
}

fn cell(number: Option<f64>, text: impl Fn(f64) -> String) -> String {
    number.map_or_else(|| NONE.to_owned(), text)
}

fn measured(fio: &FioOutcome, profile: Profile) -> impl Iterator<Item = &FioRun> {
    let runs = fio.runs.iter();
    runs.filter(move |run| run.profile == profile && run.failure.is_none())
}

fn mixes(fio: &FioOutcome) -> Option<Table> {
    let options = &fio.options;
    let mut table = Table::new(
        format!(
            "{}: reads of 16 KiB from a hot file of {} MiB beside streams that ask for {} MiB/s each \
             way, ms; what the streams got, MiB/s. A thread waits for its read, so that a p99 is a lower \
             bound here",
            fio.fio_version,
            mebibytes(options.hot_bytes as f64),
            mebibytes(options.rate_bytes_per_s as f64),
        ),
        &[
            "profile", "runs", "reads/s", "p50", "p99", "p99.9", "max", "read", "written",
        ],
    );
    for &profile in options.profiles.iter().filter(|profile| profile.is_mix()) {
        let of = |number: fn(&FioJob) -> f64| middle(fio, profile, "bystander", number);
        let stream = |job| cell(middle(fio, profile, job, |job| job.bytes_per_s), mebibytes);
        table.rows.push(vec![
            profile.to_string(),
            measured(fio, profile).count().to_string(),
            cell(of(|job| job.requests_per_s), significant),
            cell(of(|job| job.p50_ns), milliseconds),
            cell(of(|job| job.p99_ns), milliseconds),
            cell(of(|job| job.p999_ns), milliseconds),
            cell(of(|job| job.max_ns), milliseconds),
            stream("compaction-input"),
            stream("compaction-output"),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Profiles of one job, each with the name of that.
const CEILINGS: [(Profile, &str); 4] = [
    (Profile::CeilingSequentialRead, "sequential-read"),
    (Profile::CeilingSequentialWrite, "sequential-write"),
    (Profile::CeilingRandomRead4k, "random-read-4k"),
    (Profile::CeilingRandomRead16k, "random-read-16k"),
];

fn ceilings(fio: &FioOutcome) -> Option<Table> {
    let mut table = Table::new(
        "What the device gives past the page cache with nothing beside, 16 to 64 requests in flight",
        &["profile", "runs", "MiB/s", "requests/s", "p50 ms", "p99 ms"],
    );
    for (profile, job) in CEILINGS {
        if !fio.options.profiles.contains(&profile) {
            continue;
        }
        let of = |number: fn(&FioJob) -> f64| middle(fio, profile, job, number);
        table.rows.push(vec![
            profile.to_string(),
            measured(fio, profile).count().to_string(),
            cell(of(|job| job.bytes_per_s), mebibytes),
            cell(of(|job| job.requests_per_s), |n| count(n.round() as u64)),
            cell(of(|job| job.p50_ns), milliseconds),
            cell(of(|job| job.p99_ns), milliseconds),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// An arm beside the profile that does the same.
fn beside(fio: &FioOutcome, point: &PointReport<'_>) -> Option<Table> {
    let mut table = Table::new(
        "The same with SSTables and with fio: p99 of reads, ms, and bytes read per second, MiB/s. Hot \
         sets, rates and read sizes are each one's own; compare shapes, not digits",
        &["arm", "p99", "fio p99", "read", "fio read"],
    );
    for &profile in &fio.options.profiles {
        let arm = profile.arm().and_then(|arm| {
            let mut arms = point.arms.iter();
            arms.find(|a| a.arm.to_string() == arm)
        });
        let Some(arm) = arm else { continue };
        let p99 = middle(fio, profile, "bystander", |job| job.p99_ns);
        let read = middle(fio, profile, "compaction-input", |job| job.bytes_per_s);
        table.rows.push(vec![
            arm.arm.to_string(),
            cell(arm.figure(Figure::P99Ns).map(|s| s.median), milliseconds),
            cell(p99, milliseconds),
            cell(
                rates(point, &arm.arm.to_string()).map(|rates| rates.0),
                mebibytes,
            ),
            cell(read, mebibytes),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Bytes per second that an arm's compaction read and wrote on disk, medians.
fn rates(point: &PointReport<'_>, arm: &str) -> Option<(f64, f64)> {
    let counted = point.point.runs.iter().filter(|run| run.counts());
    let compactions: Vec<_> = counted
        .filter(|run| run.arm.to_string() == arm)
        .filter_map(|run| run.compaction.as_ref())
        .collect();
    let per_second = |bytes: fn(&crate::outcome::CompactionRecord) -> u64| {
        let rates = compactions.iter().map(|c| bytes(c) as f64 / c.elapsed_s);
        median(&rates.collect::<Vec<_>>())
    };
    Some((
        per_second(|c| c.input_bytes)?,
        per_second(|c| c.output_bytes)?,
    ))
}

/// How much of the device a compaction used.
fn of_ceiling(fio: &FioOutcome, point: &PointReport<'_>) -> Option<Table> {
    let ceiling = |at: usize| {
        let (profile, job) = *CEILINGS.get(at)?;
        middle(fio, profile, job, |job| job.bytes_per_s).filter(|rate| *rate > 0.0)
    };
    let (read, written) = (ceiling(0)?, ceiling(1)?);
    let mut table = Table::new(
        "Bytes on disk that the compaction read and wrote, MiB/s, and how much of the device's ceiling \
         that is",
        &["arm", "read", "of ceiling", "written", "of ceiling"],
    );
    for arm in &point.arms {
        let name = arm.arm.to_string();
        let Some((reads, writes)) = rates(point, &name) else {
            continue;
        };
        let share = |rate: f64, ceiling: f64| format!("{}%", significant(100.0 * rate / ceiling));
        table.rows.push(vec![
            name,
            mebibytes(reads),
            share(reads, read),
            mebibytes(writes),
            share(writes, written),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

fn failures(fio: &FioOutcome) -> Option<Table> {
    let mut table = Table::new("Profiles that failed", &["run", "reason"]);
    table.prose = true;
    for run in &fio.runs {
        if let Some(reason) = &run.failure {
            let place = format!("{} repeat {}", run.profile, run.repeat + 1);
            table.rows.push(vec![place, reason.clone()]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::FioOptions;
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
    fn the_device_beside_the_program() {
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
        let all = tables(&fio, Some(&report));
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
