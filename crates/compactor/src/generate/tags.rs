//! Keys of maps and elements of sets: few, so that rows of several SSTables have the same.

use compactor_sstable::data::deletion_time::DeletionTime;

use super::output::{CellTimes, RowBuffer};
use super::random::Random;
use super::sequence::{Statement, deletion_at};

/// Number of tags.
const TAGS: u32 = 16;

/// Adds a collection, each of whose elements is a tag and what `put_value` appends. INSERT leaves a quarter of all,
/// and deletes what was there before; UPDATE sets one or two, or removes them.
pub(super) fn put(
    random: &mut Random,
    column: u32,
    statement: Statement,
    cell_tombstones: f64,
    row: &mut RowBuffer,
    put_value: impl Fn(&mut Random, &mut Vec<u8>),
) {
    let bits = match statement {
        Statement::Insert(timestamp) => {
            row.begin_column(column, deletion_at(timestamp - 1));
            random.next() & random.next()
        }
        Statement::Update(_) => {
            row.begin_column(column, DeletionTime::LIVE);
            1 << random.below(TAGS.into()) | 1 << random.below(TAGS.into())
        }
    };
    for tag in (0..TAGS).filter(|tag| bits & (1u64 << tag) != 0) {
        let times = match statement {
            Statement::Insert(_) => CellTimes::OfRow,
            Statement::Update(_) => statement.times_or_deleted(random, cell_tombstones),
        };
        let text = format!("tag-{tag:02}");
        row.values.extend_from_slice(text.as_bytes());
        put_value(random, &mut row.values);
        row.end_element(text.len(), times);
    }
}
