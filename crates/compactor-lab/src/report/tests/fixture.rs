//! Invented outcomes to test reports with: [`outcome`] looks like one of a small machine, but nothing was
//! measured.

use crate::arm::Arm;
use crate::outcome::*;
use crate::random::Random;

/// Arms by their text.
pub(crate) fn arms(texts: &[&str]) -> Vec<Arm> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// Behaviour of an arm on the invented machine.
struct Behaviour {
    /// The tail: latency grows with `(1 - p).powf(-tail)`.
    tail: f64,
    evicts: f64,
    inputs: f64,
    outputs: f64,
    bytes_per_s: f64,
}

fn behaviour(arm: Arm) -> Behaviour {
    let text = arm.to_string();
    let (read, write) = text.split_once('/').unwrap_or(("idle", "idle"));
    let cached = |mode: &str| f64::from(u8::from(["buffered", "trickle"].contains(&mode)));
    let (inputs, outputs) = (cached(read), cached(write));
    Behaviour {
        tail: match text.as_str() {
            "idle" => 0.2,
            _ => 0.24 + 0.16 * inputs + 0.14 * outputs,
        },
        evicts: 0.35 * inputs + 0.3 * outputs,
        inputs,
        outputs,
        bytes_per_s: 1e8 * (0.9 + 0.1 * inputs),
    }
}

/// An outcome with one point and these arms, each run `repeats` times after one warm-up.
pub(crate) fn outcome(arms: &[Arm], repeats: u32) -> Outcome {
    let example = include_str!("../../../tests/data/outcome.json");
    let mut outcome: Outcome = serde_json::from_str(example).unwrap();
    outcome.options.arms = arms.to_vec();
    outcome.options.setup.repeats = repeats;
    let point = point(&mut outcome, 64 << 20, arms, repeats);
    outcome.points = vec![point];
    outcome
}

/// Outcome like [`outcome`], with these sizes of the hot set, MiB.
pub(crate) fn sweep(arms: &[Arm], repeats: u32, sizes: &[u64]) -> Outcome {
    let mut outcome = outcome(arms, repeats);
    let points = sizes.iter().map(|size| size << 20);
    outcome.points = points
        .map(|size| point(&mut outcome, size, arms, repeats))
        .collect();
    outcome
}

fn point(outcome: &mut Outcome, hot_set_bytes: u64, arms: &[Arm], repeats: u32) -> SweepPoint {
    let mut point = outcome.points[0].clone();
    point.hot_set_bytes = hot_set_bytes;
    point.pressure = hot_set_bytes as f64 / point.memory_limit_bytes.unwrap() as f64;
    let like = point.runs.remove(0);
    point.runs.clear();
    for repeat in 0..=repeats {
        for &arm in arms {
            let order = point.runs.len() as u32;
            let mut random = Random::new(u64::from(order), hot_set_bytes);
            let pressure = point.pressure;
            point.runs.push(Run {
                attempt: Attempt {
                    order,
                    repeat,
                    warm_up: repeat == 0,
                    ..Attempt::default()
                },
                ..run(arm, &like, pressure, &mut random)
            });
        }
    }
    point
}

fn run(arm: Arm, like: &Run, pressure: f64, random: &mut Random) -> Run {
    let behaviour = behaviour(arm);
    let mut jitter = |share: f64| {
        let fraction = (random.next() >> 11) as f64 / (1u64 << 53) as f64;
        1.0 + share * (2.0 * fraction - 1.0)
    };
    let tail = behaviour.tail * (0.6 + 1.6 * pressure.min(1.0)) * jitter(0.06);
    let bytes_per_s = behaviour.bytes_per_s * jitter(0.02);
    let length = 536_870_912.0 / bytes_per_s + 14.0;
    let pages = 16_384.0;
    let evicted = pages * behaviour.evicts * jitter(0.1) * pressure.min(0.25) * 4.0;
    let phase = |at: f64| match at {
        at if at < 0.0 => Phase::Before,
        at if at < length => Phase::During,
        _ => Phase::After,
    };
    let intervals = (-5..length as i32 + 5).map(|second| {
        let at = f64::from(second);
        let tail = if phase(at) == Phase::During {
            tail
        } else {
            0.2
        };
        let latency = latency(tail * jitter(0.1), 2000);
        Interval {
            start_s: at,
            duration_s: 1.0,
            phase: phase(at),
            operations: latency.operations,
            errors: 0,
            mean_ns: latency.mean_ns,
            p50_ns: latency.p50_ns,
            p99_ns: latency.p99_ns,
            p999_ns: latency.p999_ns,
            max_ns: latency.max_ns,
        }
    });
    let intervals = intervals.collect();
    let samples = (-50..(length as i32 + 5) * 10).map(|tenth| {
        let at = f64::from(tenth) / 10.0;
        let share = (at / length).clamp(0.0, 1.0);
        let mut sample = like.samples[0].clone();
        let gone = evicted * (4.0 * share).min(1.0);
        let pages_of = |total: f64, resident: f64| Pages {
            total: total as u64,
            resident: resident as u64,
            dirty: Some((resident * 0.05) as u64),
            writeback: Some(0),
        };
        sample.at_s = at;
        sample.phase = phase(at);
        sample.hot = (tenth % 5 == 0).then(|| pages_of(pages, pages - gone));
        let rises = (6.0 * share).min(1.0);
        let read = 20_000.0 * behaviour.inputs * rises;
        sample.inputs = Some(pages_of(98_304.0, pages - gone + read));
        let written = 14_000.0 * behaviour.outputs * rises;
        sample.outputs = Some(pages_of(98_304.0 * share, written.min(98_304.0 * share)));
        sample
    });
    let samples = samples.collect();
    let compaction = like.compaction.clone().filter(|_| arm != Arm::Idle);
    Run {
        arm,
        intervals,
        samples,
        during: latency(tail, 40_000),
        compaction: compaction.map(|record| CompactionRecord {
            elapsed_s: length,
            uncompressed_bytes_per_s: bytes_per_s,
            ..record
        }),
        hot_set: HotSetRecord {
            pages: pages as u64,
            resident_before: Some(pages as u64),
            least_resident: Some((pages - evicted) as u64),
            resident_after: Some((pages - evicted) as u64),
            read_again: Some((evicted * 0.5) as u64),
            evicted: Some(evicted as u64),
        },
        memory: MemoryRecord {
            cgroup_refaults: Some((evicted * 1.7) as u64),
            ..like.memory
        },
        ..like.clone()
    }
}

/// Latencies with a tail.
fn latency(tail: f64, operations: u64) -> Latency {
    let at = |p: f64| {
        let least = 0.3 / operations as f64;
        (80_000.0 * (1.0 - p).max(least).powf(-tail)) as u64
    };
    let shares = (0..200).map(|i| 1.0 - 0.9f64.powi(i)).take_while(|p| {
        let left = (1.0 - p) * operations as f64;
        left >= 0.5
    });
    let point = |p: f64| CurvePoint {
        percentile: p * 100.0,
        latency_ns: at(p),
        operations: (p * operations as f64) as u64,
    };
    let mut curve: Vec<CurvePoint> = shares.map(point).collect();
    curve.push(point(1.0));
    Latency {
        operations,
        mean_ns: 80_000.0 / (1.0 - tail.min(0.9)),
        min_ns: at(0.0),
        p50_ns: at(0.5),
        p90_ns: at(0.9),
        p95_ns: at(0.95),
        p99_ns: at(0.99),
        p999_ns: at(0.999),
        p9999_ns: at(0.9999),
        max_ns: at(1.0),
        curve,
        ..Latency::default()
    }
}

/// Outcomes that are likely to break a report, each with its name.
pub(crate) fn edges() -> Vec<(&'static str, Outcome)> {
    let three = arms(&["idle", "buffered/buffered", "direct/direct"]);
    let mut all = vec![
        ("one arm", outcome(&three[2..], 5)),
        ("one repeat", outcome(&three, 1)),
        ("no repeat", outcome(&three, 0)),
        ("no arm", outcome(&[], 5)),
    ];

    let mut invalid = outcome(&three, 3);
    for run in &mut invalid.points[0].runs {
        run.attempt.invalid = vec![Warning {
            kind: "failed".to_owned(),
            text: "No space left on device <os error 28>".to_owned(),
        }];
    }
    all.push(("all runs invalid", invalid));

    let mut bare = outcome(&three, 3);
    for run in &mut bare.points[0].runs {
        (run.samples, run.intervals) = (Vec::new(), Vec::new());
        run.during.curve = Vec::new();
        run.hot_set = HotSetRecord::default();
    }
    all.push(("no samples", bare));

    let mut zero = outcome(&three, 3);
    for run in &mut zero.points[0].runs {
        run.during = Latency {
            mean_ns: f64::NAN,
            curve: vec![CurvePoint {
                percentile: f64::NAN,
                latency_ns: 0,
                operations: 0,
            }],
            ..Latency::default()
        };
        for interval in &mut run.intervals {
            (interval.p99_ns, interval.start_s) = (0, f64::INFINITY);
        }
        for sample in &mut run.samples {
            sample.at_s = f64::NAN;
        }
    }
    zero.points[0].pressure = f64::NAN;
    all.push(("zeros and no numbers", zero));

    let mut long = outcome(&three, 2);
    let name = "<script>alert(\"x\")</script>&'`|".repeat(20);
    long.environment.cpu = Some(name.clone());
    long.environment.mount_options = Some(name.clone());
    long.options.setup.command = Some(vec![name.clone(); 3]);
    long.warnings.push(Warning::new(&name, &name));
    long.points[0].data.shape = format!("{name}\u{1}\u{1b}[2J\u{202e}");
    all.push(("long and hostile texts", long));

    let mut many = Vec::new();
    for read in ["buffered", "dontneed", "dontcache", "direct"] {
        for write in ["buffered", "trickle", "dontneed", "dontcache", "direct"] {
            many.push(format!("{read}/{write}").parse().unwrap());
        }
    }
    all.push(("twenty arms", outcome(&many, 2)));
    let mut stopped = outcome(&three, 1);
    stopped.points.clear();
    stopped.header.end = End::Interrupted;
    all.push(("no point", stopped));
    all.push(("sweep", sweep(&three, 3, &[16, 64, 128, 256])));
    all
}
