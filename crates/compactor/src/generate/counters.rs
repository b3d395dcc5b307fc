//! Shape `counters`: rows of counters that the replicas of a partition have counted up and down, and tombstones of
//! some.
//!
//! A replica that takes an update writes what it has counted so far, by the clock of that moment: a global shard under
//! its id. A memtable joins the shards of its replicas, so that a cell has one for each that took an update since the
//! memtable before, and a merge joins cells of other replicas and takes the later of two shards of the same.

use compactor_sstable::types::CqlType;

use super::output::{CellTimes, RowBuffer};
use super::random::Random;
use super::sequence::{self, RowPosition, Rows, Statement};
use super::table::TableColumns;
use super::{GenerateOptions, SECOND_US};

/// Counters of a row.
const COLUMNS: u32 = 3;
/// Nodes of the cluster.
const NODES: usize = 6;
/// Number of these that have a partition.
const REPLICAS: usize = 3;

pub(super) fn columns() -> TableColumns {
    let counters = ["clicks", "likes", "views"];
    sequence::columns(
        Vec::new(),
        counters.map(|name| (name, CqlType::CounterColumn)).to_vec(),
    )
}

#[derive(Debug)]
pub(super) struct Counters {
    sstable: u32,
    cell_tombstones: f64,
    /// Ids of the nodes, ascending as in contexts.
    ids: [[u8; 16]; NODES],
}

impl Counters {
    pub(super) fn new(options: &GenerateOptions, sstable: u32) -> Counters {
        let mut random = Random::of(options.seed, &[NODES as u64]);
        let mut ids = [[0; 16]; NODES];
        for id in &mut ids {
            id[..8].copy_from_slice(&random.next().to_be_bytes());
            id[8..].copy_from_slice(&random.next().to_be_bytes());
            // Version 4 and variant of a UUID, as host ids are.
            id[6] = id[6] & 0x0f | 0x40;
            id[8] = id[8] & 0x3f | 0x80;
        }
        ids.sort_unstable();
        Counters {
            sstable,
            cell_tombstones: options.cell_tombstones,
            ids,
        }
    }

    /// Appends the context of a cell: which replicas have counted, how far, and when.
    fn put_context(&self, random: &mut Random, partition: u64, written: i64, out: &mut Vec<u8>) {
        let first = partition as usize % NODES;
        // At least one of them: each has a bit.
        let counting = 1 + random.below((1 << REPLICAS) - 1);
        let has_counted = |node: &usize| {
            let replica = (node + NODES - first) % NODES;
            replica < REPLICAS && counting & (1 << replica) != 0
        };
        let shards = counting.count_ones() as i16;
        out.extend_from_slice(&shards.to_be_bytes());
        for shard in 0..shards {
            // Its index plus Short.MIN_VALUE marks a global shard (`CounterContext`).
            out.extend_from_slice(&(shard + i16::MIN).to_be_bytes());
        }
        for node in (0..NODES).filter(has_counted) {
            // The cell is as new as its last shard. Replicas count in microseconds, too.
            let clock = written - random.below(SECOND_US as u64) as i64;
            let counted = random.below(1000 * u64::from(self.sstable + 1)) as i64;
            out.extend_from_slice(&self.ids[node]);
            out.extend_from_slice(&clock.to_be_bytes());
            // Some have counted down.
            out.extend_from_slice(&(counted - 100).to_be_bytes());
        }
    }
}

impl Rows for Counters {
    fn columns(&self) -> u32 {
        COLUMNS
    }

    fn put_column(
        &self,
        random: &mut Random,
        column: u32,
        place: RowPosition,
        statement: Statement,
        row: &mut RowBuffer,
    ) {
        let times = statement.times_or_deleted(random, self.cell_tombstones);
        if let CellTimes::At(written) = times {
            self.put_context(random, place.partition, written, &mut row.values);
        }
        row.end_cell_at(column, times);
    }
}
