//! Data that a client sees, which must not be changed by purging any of the inputs, nor by SSTables that join
//! later.

use std::collections::BTreeMap;

use compactor_engine::row::PurgeLimit;
use compactor_sstable::data::cell::EXPIRED_LIVENESS_TTL;
use compactor_sstable::data::deletion_time::{DeletionTime, NO_DELETION_TIME};

use crate::metamorphic::{as_input, case_without_counters, make_consistent, merge_some};
use compactor_testkit::model::case::{Case, PurgePlan};
use compactor_testkit::model::choices::{Choices, check};
use compactor_testkit::model::engine::{Input, Output, merge};
use compactor_testkit::model::expected_statistics::ExpectedStatistics;
use compactor_testkit::model::generate::TIMESTAMP;
use compactor_testkit::model::naive::{self, Purge};
use compactor_testkit::model::table::{Row, Table, Unfiltered, Values};

/// Values of cells by column and path, and whether the row exists without any.
pub type VisibleRow = (bool, BTreeMap<(usize, Vec<u8>), Vec<u8>>);

/// Rows that a client sees; static ones have no clustering.
pub type Visible = BTreeMap<(Vec<u8>, Option<Values>), VisibleRow>;

pub fn visible(table: &Table, now_s: i64) -> Visible {
    let mut rows = Visible::new();
    for ((_, key), partition) in table {
        rows.extend(
            visible_row(&partition.static_row, now_s).map(|row| ((key.clone(), None), row)),
        );
        for unfiltered in &partition.unfiltereds {
            if let Unfiltered::Row { clustering, row } = unfiltered {
                let place = (key.clone(), Some(clustering.clone()));
                rows.extend(visible_row(row, now_s).map(|row| (place, row)));
            }
        }
    }
    rows
}

fn visible_row(row: &Row, now_s: i64) -> Option<VisibleRow> {
    let exists = !row.liveness.is_empty()
        && row.liveness.ttl != EXPIRED_LIVENESS_TTL
        && (row.liveness.ttl == 0 || now_s < row.liveness.local_expiration_time);
    let mut values = BTreeMap::new();
    for (column, data) in &row.columns {
        for cell in &data.cells {
            let is_live = cell.local_deletion_time == NO_DELETION_TIME
                || (cell.ttl != 0 && now_s < cell.local_deletion_time);
            if is_live && cell.timestamp > data.deletion.marked_for_delete_at {
                values.insert((*column, cell.path.clone()), cell.value.clone());
            }
        }
    }
    (exists || !values.is_empty()).then_some((exists, values))
}

fn visible_in(case: &Case, output: &Output) -> Result<Visible, String> {
    let table = case.read(&case.settings.output, &output.bytes, 4096)?;
    Ok(visible(&table, case.settings.now_s))
}

/// Generates a case without data whose visibility depends on the time of reading, in Cassandra as well:
/// expiring cells with the timestamp of another. Before they expire, the later expiration wins; once one has
/// become a tombstone, that one does. And without data that no SSTable of Cassandra contains, since the
/// SSTable deletes it itself: it is removed only by the first deletion that joins it from another SSTable.
pub fn generate(choices: &mut Choices) -> Case {
    let mut case = case_without_counters(choices);
    for (number, source) in case.sources.iter_mut().enumerate() {
        make_consistent(source);
        let twice = [source.table.clone(), source.table.clone()];
        source.table = naive::merge(&case.schema, &twice, |_| Purge {
            now_s: i64::MIN,
            gc_before_s: i64::MIN,
            before: None,
        });
        for partition in source.table.values_mut() {
            spread(&mut partition.deletion);
            spread_row(&mut partition.static_row, number);
            for unfiltered in &mut partition.unfiltereds {
                match unfiltered {
                    Unfiltered::Row { row, .. } => spread_row(row, number),
                    Unfiltered::Marker { close, open, .. } => {
                        spread(close);
                        spread(open);
                    }
                }
            }
        }
    }
    case
}

/// Makes timestamps distinct.
fn spread(deletion: &mut DeletionTime) {
    if !deletion.is_live() {
        spread_timestamp(&mut deletion.marked_for_delete_at);
    }
}

fn spread_timestamp(timestamp: &mut i64) {
    *timestamp = TIMESTAMP + 16 * (*timestamp - TIMESTAMP);
}

fn spread_row(row: &mut Row, number: usize) {
    if !row.liveness.is_empty() {
        spread_timestamp(&mut row.liveness.timestamp);
    }
    spread(&mut row.deletion);
    for data in row.columns.values_mut() {
        spread(&mut data.deletion);
        for cell in &mut data.cells {
            spread_timestamp(&mut cell.timestamp);
            if cell.ttl != 0 {
                cell.timestamp += 1 + number as i64;
            }
        }
    }
}

fn same(what: &str, kept: &Visible, purged: &Visible) -> Result<(), String> {
    if kept == purged {
        Ok(())
    } else {
        Err(format!(
            "{what}: without purging {kept:?}\nwith it {purged:?}"
        ))
    }
}

#[test]
fn purging_a_whole_table_changes_nothing_visible() {
    let verify = |case: &Case| {
        let inputs = case.inputs();
        let kept = case.merge(&inputs, PurgePlan::Nothing)?;
        let purged = case.merge(&inputs, PurgePlan::All)?;
        same(
            "all",
            &visible_in(case, &kept)?,
            &visible_in(case, &purged)?,
        )
    };
    check("visible", 250, generate, verify, Case::simpler);
}

/// Some inputs are merged and purged as far as the others permit; then the result is merged with the others.
#[test]
fn purging_some_inputs_restores_no_data() {
    let verify = |case: &Case| {
        let inputs = case.inputs();
        let all = case.merge(&inputs, PurgePlan::Nothing)?;
        let expected = visible_in(case, &all)?;
        for count in 1..inputs.len() {
            let (inside, outside) = inputs.split_at(count);
            let others: Vec<(&Table, i64)> = case.sources[count..]
                .iter()
                .map(|source| {
                    let statistics = ExpectedStatistics::of(&case.schema, &source.stored());
                    (&source.table, statistics.min_timestamp)
                })
                .collect();
            let limit = |key: &[u8]| {
                let may_hold = others
                    .iter()
                    .filter(|(table, _)| table.keys().any(|(_, other)| other == key));
                match may_hold.map(|(_, min_timestamp)| *min_timestamp).min() {
                    Some(timestamp) => PurgeLimit::Before(timestamp),
                    None => PurgeLimit::Unlimited,
                }
            };
            let purged = merge_all_columns(case, inside, limit)?;
            let mut later = vec![as_input(case, &purged)?];
            later.extend_from_slice(outside);
            let joined = case.merge(&later, PurgePlan::Nothing)?;
            same(&format!("{count}"), &expected, &visible_in(case, &joined)?)?;
        }
        Ok(())
    };
    check("overlapping", 250, generate, verify, Case::simpler);
}

/// Merges some of the inputs to the header of all.
fn merge_all_columns(
    case: &Case,
    inputs: &[Input],
    limit: impl Fn(&[u8]) -> PurgeLimit,
) -> Result<Output, String> {
    let mut inputs = inputs.to_vec();
    inputs.push(crate::metamorphic::empty_input(case));
    merge(&case.schema, &inputs, &case.settings, limit).map_err(|e| format!("the merge fails: {e}"))
}

/// Expired data stays expired, whatever it is merged with later: time advances between two merges.
#[test]
fn time_may_pass_between_merges() {
    let verify = |case: &Case| {
        let inputs = case.inputs();
        let mut early = case.clone();
        early.settings.now_s -= 120;
        early.settings.gc_before_s = early.settings.now_s - 100;
        early.purge = PurgePlan::Nothing;
        let halves = inputs.split_at(inputs.len() / 2);
        let mut later = Vec::new();
        for half in [halves.0, halves.1] {
            if !half.is_empty() {
                later.push(as_input(case, &merge_some(&early, half)?)?);
            }
        }
        let expected = visible_in(case, &case.merge(&inputs, PurgePlan::Nothing)?)?;
        for plan in [PurgePlan::Nothing, PurgePlan::All] {
            same(
                "later",
                &expected,
                &visible_in(case, &case.merge(&later, plan)?)?,
            )?;
        }
        Ok(())
    };
    check("time", 250, generate, verify, Case::simpler);
}
