//! Where and how a comparison was measured, as names and values.

use super::ChunkLengthReport;
use crate::arm::Arm;
use crate::outcome::End;
use crate::report::place;
use crate::report::units::{bytes, seconds, significant, utc};
use crate::text_table::{count, counted};

pub(super) fn lines(report: &ChunkLengthReport<'_>) -> Vec<(&'static str, String)> {
    let outcome = report.outcome;
    let options = &outcome.options;
    let mut lines = vec![(
        "experiment",
        format!(
            "chunk length, {}, {}{}",
            utc(outcome.started_at_ms),
            seconds(outcome.elapsed_s),
            match outcome.end {
                End::Complete => "",
                End::Interrupted => ", INTERRUPTED: not all runs took place",
            }
        ),
    )];
    if let Some(command) = &options.command {
        lines.push(("command", command.join(" ")));
    }
    lines.push(("rows", place::table(&outcome.source)));
    let limit = outcome.memory_limit_bytes.map_or_else(
        || "no memory limit".to_owned(),
        |limit| format!("memory limit {}", bytes(limit as f64)),
    );
    lines.push((
        "hot rows",
        format!(
            "{} on {} of the table as it was, {}; {limit}",
            count(outcome.hot_rows),
            bytes(options.hot_set_bytes as f64),
            place::popularity(options.distribution),
        ),
    ));
    let rate = outcome.rate_per_s.map_or_else(String::new, |rate| {
        let why = match options.rate_per_s {
            Some(_) => "",
            None => ", half of what the slowest came to while warming up",
        };
        format!(
            "; then {} reads/s on a Poisson schedule{why}, latency from when a read was to begin",
            significant(rate)
        )
    });
    lines.push((
        "bystander",
        format!(
            "{}, each reading on as soon as it has read{rate}",
            counted(u64::from(options.reader_threads), "thread"),
        ),
    ));
    lines.push((
        "compaction",
        match options.compaction {
            Arm::Idle => "none".to_owned(),
            arm => format!(
                "of the table as it was, the same for all variants, again and again, {arm}: {}",
                place::compaction(
                    options.throughput_bytes_per_s,
                    options.compaction_threads,
                    options.compaction_memory_bytes,
                    &options.backend
                )
            ),
        },
    ));
    lines.push((
        "repeats",
        format!(
            "{} of each variant, in an order drawn anew each time (seed {}), after {}; page cache \
             dropped before each, filled by {} of reads, {} for each measurement",
            options.repeats,
            options.seed,
            counted(u64::from(options.warm_ups), "warm-up"),
            seconds(options.warm_s),
            seconds(options.measure_s),
        ),
    ));
    lines.extend(place::machine(&outcome.environment));
    lines
}
