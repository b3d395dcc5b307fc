//! Comparison of a merge with the naive model: bytes, index, statistics and counts.

use super::case::{Case, PurgePlan};
use super::encode::{Encoded, encode};
use super::engine::Output;
use super::expected_statistics::ExpectedStatistics;
use super::naive;
use super::promoted::promoted_index;
use super::stored::stored;
use super::table::{Partition, Table, hex};

/// Compares the engine's output with the model's, to the byte.
pub fn merge_equals_the_model(case: &Case) -> Result<(), String> {
    let output = case.run()?;
    let expected = case.expected();
    let header = &case.settings.output;
    let encoded = encode(&case.schema, header, &expected, None);
    let found = case.read(header, &output.bytes, 4096)?;
    same_partitions(case, &stored(&expected, header), &found)?;
    if output.bytes != encoded.bytes {
        let (expected, found) = (hex(&encoded.bytes), hex(&output.bytes));
        return Err(format!(
            "bytes differ:\nexpected {expected}\nfound    {found}"
        ));
    }
    check_index(case, &expected, &encoded, &output)?;
    ExpectedStatistics::of(&case.schema, &expected).compare(&encoded, &output)?;
    check_counts(case, &output)
}

/// Compares the written table with the one that a cursor reads, which lacks data that Cassandra's reader
/// drops.
pub fn same_partitions(case: &Case, expected: &Table, found: &Table) -> Result<(), String> {
    let keys = |table: &Table| table.keys().cloned().collect::<Vec<_>>();
    if keys(expected) != keys(found) {
        return Err(format!(
            "partitions {:?} but found {:?}",
            keys(expected),
            keys(found)
        ));
    }
    for (key, partition) in expected {
        let as_read = |partition: &Partition| naive::as_read(&case.schema, partition);
        let (expected, found) = (as_read(partition), as_read(&found[key]));
        if expected != found {
            let key = hex(&key.1);
            return Err(format!(
                "partition {key}\nexpected {expected:?}\nfound {found:?}"
            ));
        }
    }
    Ok(())
}

fn check_index(
    case: &Case,
    expected: &Table,
    encoded: &Encoded,
    output: &Output,
) -> Result<(), String> {
    let found: Vec<_> = output
        .index
        .iter()
        .map(|e| (e.position as usize, &e.key))
        .collect();
    let positions = encoded.partitions.iter().map(|p| p.start);
    let meant: Vec<_> = positions.zip(expected.keys().map(|(_, key)| key)).collect();
    if found != meant {
        return Err(format!("index {found:?} but {meant:?}"));
    }
    for ((entry, place), partition) in output
        .index
        .iter()
        .zip(&encoded.partitions)
        .zip(expected.values())
    {
        let settings = &case.settings;
        let block_len = settings.column_index_size as usize;
        let promoted = promoted_index(&case.schema, &settings.output, block_len, partition, place);
        if promoted != entry.promoted {
            let (expected, found) = (hex(&promoted), hex(&entry.promoted));
            return Err(format!(
                "promoted index\nexpected {expected}\nfound    {found}\n{place:?}"
            ));
        }
    }
    Ok(())
}

fn check_counts(case: &Case, output: &Output) -> Result<(), String> {
    let tables = || case.sources.iter().map(|source| &source.table);
    let mut by_inputs = vec![0; case.sources.len()];
    let keys: std::collections::BTreeSet<_> = tables().flat_map(|table| table.keys()).collect();
    for key in keys {
        by_inputs[tables().filter(|table| table.contains_key(key)).count() - 1] += 1;
    }
    if output.counts.partitions_by_inputs != by_inputs {
        let found = &output.counts.partitions_by_inputs;
        return Err(format!("partitions by inputs {found:?} but {by_inputs:?}"));
    }
    if matches!(case.purge, PurgePlan::Nothing) && output.counts.purged.total() != 0 {
        return Err(format!("purged {:?}", output.counts.purged));
    }
    let mut with_ttl = (0, 0);
    if case.settings.strips_ttl {
        for source in &case.sources {
            let (cells, rows) = naive::count_ttl(&case.schema, &source.stored());
            with_ttl = (with_ttl.0 + cells, with_ttl.1 + rows);
        }
    }
    let purged = &output.counts.purged;
    let stripped = (purged.stripped_cells, purged.stripped_rows);
    if stripped != with_ttl {
        return Err(format!(
            "stripped {stripped:?} (cells, rows) of {with_ttl:?}"
        ));
    }
    let partitions = || tables().flat_map(|table| table.values());
    let rows = |p: &Partition| p.rows().count() + usize::from(!p.static_row.is_empty());
    let rows: usize = partitions().map(rows).sum();
    if output.counts.rows_read != rows as u64 {
        return Err(format!("{} rows read of {rows}", output.counts.rows_read));
    }
    let markers = partitions();
    let markers: usize = markers
        .map(|p| p.unfiltereds.len() - p.rows().count())
        .sum();
    if output.counts.markers_read != markers as u64 {
        return Err(format!(
            "{} markers read of {markers}",
            output.counts.markers_read
        ));
    }
    Ok(())
}
