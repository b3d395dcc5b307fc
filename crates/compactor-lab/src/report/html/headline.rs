//! What an outcome says in a sentence or two.

use super::markup::escaped;
use crate::arm::Arm;
use crate::report::tables::with_interval;
use crate::report::units::{bytes, milliseconds};
use crate::report::{ArmReport, Figure, PointReport, Report, ratio_of};

/// Of the first point: how much the buffered compaction disturbed, and what the gentlest did.
pub(super) fn of(report: &Report<'_>) -> String {
    let Some(point) = report.points.first() else {
        return "<p class=\"headline\">No run took place.</p>\n".to_owned();
    };
    let sentences = [buffered(point), gentlest(point)];
    let text: Vec<String> = sentences.into_iter().flatten().collect();
    if text.is_empty() {
        return String::new();
    }
    format!("<p class=\"headline\">{}</p>\n", escaped(&text.join(" ")))
}

fn p99(arm: &ArmReport) -> Option<f64> {
    Some(arm.figure(Figure::P99Ns)?.median)
}

fn buffered(point: &PointReport<'_>) -> Option<String> {
    let of = |arm| point.arms.iter().find(|a| a.arm == arm);
    let (idle, buffered) = (of(Arm::Idle)?, of(Arm::BUFFERED)?);
    let ratio = ratio_of(&buffered.to_idle, Figure::P99Ns)?;
    Some(format!(
        "With a hot set of {}, p99 of reads was {} ms with nothing beside them and {} ms beside a \
         compaction through the page cache: {}.",
        bytes(point.hot_set_bytes as f64),
        milliseconds(p99(idle)?),
        milliseconds(p99(buffered)?),
        with_interval(ratio)
    ))
}

fn gentlest(point: &PointReport<'_>) -> Option<String> {
    let compactions = point.arms.iter().filter(|arm| arm.arm != Arm::Idle);
    let others = compactions.filter(|arm| arm.arm != Arm::BUFFERED);
    let gentlest = others.filter(|arm| p99(arm).is_some()).min_by(|a, b| {
        p99(a)
            .unwrap_or(f64::NAN)
            .total_cmp(&p99(b).unwrap_or(f64::NAN))
    })?;
    let ratio = ratio_of(&gentlest.to_buffered, Figure::P99Ns)?;
    let verdict = if ratio.differs() {
        ""
    } else {
        "; the repeats do not show that they differ"
    };
    Some(format!(
        "The lowest p99 beside another compaction was {} ms, of {}: {} of buffered{verdict}.",
        milliseconds(p99(gentlest)?),
        gentlest.arm,
        with_interval(ratio)
    ))
}
