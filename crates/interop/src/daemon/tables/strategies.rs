//! One table of each compaction strategy; all others are size-tiered.

use super::{Table, time};
use crate::template::words;

pub(super) fn tables() -> Vec<Table> {
    let window = "'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'MINUTES', 'compaction_window_size': 15";
    vec![
        table("lcs", "'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': 1"),
        // Rounds are 1,000 s apart: each has a window of its own.
        table("twcs", window),
        table("ucs", "'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'L4', 'min_sstable_size': '0B'").since(5),
    ]
}

fn table(name: &'static str, compaction: &str) -> Table {
    let create = format!(
        "CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c)) WITH compaction = {{{compaction}}}"
    );
    Table::new(name, create, |round, writes| {
        for n in 0..200 {
            writes.push(format!(
                "INSERT INTO $t (k, c, v) VALUES ({}, {}, '{}') USING TIMESTAMP {}",
                n % 50,
                n / 50 + round * 2,
                words(round * 1000 + n, 200),
                time(round, n)
            ));
        }
        for n in 0..10 {
            let time = time(round, 300 + n);
            writes.push(format!(
                "DELETE FROM $t USING TIMESTAMP {time} WHERE k = {} AND c = {round}",
                n * 5
            ));
        }
    })
}
