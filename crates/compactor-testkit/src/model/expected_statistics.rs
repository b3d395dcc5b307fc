//! Statistics of a table, counted item by item.
//!
//! Source: `MetadataCollector`, `Rows.collectStats`, `SortedTableWriter`.

use compactor_sstable::data::cell::Liveness;
use compactor_sstable::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use compactor_sstable::statistics::EstimatedHistogram;

use super::counters::has_legacy_shards;
use super::encode::Encoded;
use super::engine::Output;
use super::table::{Row, Schema, Table, Unfiltered};

#[derive(Debug, PartialEq)]
pub struct ExpectedStatistics {
    pub min_timestamp: i64,
    pub max_timestamp: i64,
    pub min_local_deletion_time: i64,
    pub max_local_deletion_time: i64,
    pub min_ttl: i32,
    pub max_ttl: i32,
    pub total_rows: i64,
    pub total_columns_set: i64,
    pub has_partition_level_deletions: bool,
    pub has_legacy_counter_shards: bool,
    /// Number of cells of each partition.
    cells: Vec<i64>,
    /// Local deletion times, each as often as it occurs.
    drop_times: Vec<i64>,
}

#[derive(Default)]
struct Items {
    timestamps: Vec<i64>,
    seconds: Vec<i64>,
    ttls: Vec<i32>,
}

impl Items {
    fn deletion(&mut self, deletion: &DeletionTime) {
        if !deletion.is_live() {
            self.timestamps.push(deletion.marked_for_delete_at);
            self.seconds.push(deletion.local_deletion_time);
        }
    }

    fn live(&mut self, timestamp: i64, ttl: i32, seconds: i64) {
        self.timestamps.push(timestamp);
        self.ttls.push(ttl);
        self.seconds.push(seconds);
    }

    fn row(&mut self, row: &Row) {
        let Liveness {
            timestamp,
            ttl,
            local_expiration_time,
        } = row.liveness;
        if !row.liveness.is_empty() {
            self.live(timestamp, ttl, local_expiration_time);
        }
        self.deletion(&row.deletion);
        for data in row.columns.values() {
            self.deletion(&data.deletion);
            for cell in &data.cells {
                self.live(cell.timestamp, cell.ttl, cell.local_deletion_time);
            }
        }
    }
}

impl ExpectedStatistics {
    pub fn of(schema: &Schema, table: &Table) -> ExpectedStatistics {
        let mut items = Items::default();
        let (mut total_rows, mut total_columns_set) = (0, 0);
        let mut has_legacy_counter_shards = false;
        let mut cells = Vec::new();
        for partition in table.values() {
            items.deletion(&partition.deletion);
            let static_row = Some(&partition.static_row)
                .filter(|row| !row.is_empty())
                .into_iter();
            let mut count = 0;
            for row in static_row.chain(partition.rows()) {
                total_rows += 1;
                items.row(row);
                for (index, data) in &row.columns {
                    let is_counter = schema.columns[*index].is_counter();
                    has_legacy_counter_shards |=
                        is_counter && data.cells.iter().any(|c| has_legacy_shards(&c.value));
                    total_columns_set += i64::from(!data.cells.is_empty());
                    count += data.cells.len() as i64;
                }
            }
            cells.push(count);
            for unfiltered in &partition.unfiltereds {
                if let Unfiltered::Marker { close, open, .. } = unfiltered {
                    items.deletion(close);
                    items.deletion(open);
                }
            }
        }
        let Items {
            timestamps,
            seconds,
            ttls,
        } = items;
        let mut drop_times: Vec<i64> = seconds
            .iter()
            .copied()
            .filter(|s| *s != NO_DELETION_TIME)
            .collect();
        drop_times.sort_unstable();
        ExpectedStatistics {
            min_timestamp: timestamps.iter().copied().min().unwrap_or(i64::MIN),
            max_timestamp: timestamps.iter().copied().max().unwrap_or(i64::MAX),
            min_local_deletion_time: seconds.iter().copied().min().unwrap_or(NO_DELETION_TIME),
            max_local_deletion_time: seconds.iter().copied().max().unwrap_or(NO_DELETION_TIME),
            min_ttl: ttls.iter().copied().min().unwrap_or(0),
            max_ttl: ttls.iter().copied().max().unwrap_or(0),
            total_rows,
            total_columns_set,
            has_legacy_counter_shards,
            has_partition_level_deletions: table.values().any(|p| !p.deletion.is_live()),
            cells,
            drop_times,
        }
    }

    /// Compares with the statistics of the output's collector.
    pub fn compare(&self, encoded: &Encoded, output: &Output) -> Result<(), String> {
        let stats = &output.statistics.stats;
        let bins = stats.tombstone_drop_times.bins();
        let found = ExpectedStatistics {
            min_timestamp: stats.min_timestamp,
            max_timestamp: stats.max_timestamp,
            min_local_deletion_time: stats.min_local_deletion_time,
            max_local_deletion_time: stats.max_local_deletion_time,
            min_ttl: stats.min_ttl,
            max_ttl: stats.max_ttl,
            total_rows: stats.total_rows,
            total_columns_set: stats.total_columns_set,
            has_partition_level_deletions: stats.has_partition_level_deletions,
            has_legacy_counter_shards: stats.has_legacy_counter_shards,
            cells: self.cells.clone(),
            drop_times: self.drop_times.clone(),
        };
        if found != *self {
            return Err(format!("statistics {found:#?}\nbut {self:#?}"));
        }
        if output.rows != self.total_rows as u64 || output.partitions != self.cells.len() as u64 {
            return Err(format!(
                "{} rows, {} partitions",
                output.rows, output.partitions
            ));
        }
        let counted: i64 = bins.iter().map(|(_, count)| i64::from(*count)).sum();
        if counted != self.drop_times.len() as i64 {
            return Err(format!("{counted} drop times of {}", self.drop_times.len()));
        }
        let mut sizes = EstimatedHistogram::of_partition_sizes();
        let mut cells = EstimatedHistogram::of_cell_counts();
        for (partition, count) in encoded.partitions.iter().zip(&self.cells) {
            sizes.add((partition.end - partition.start) as i64);
            cells.add(*count);
        }
        if sizes != stats.partition_sizes || cells != stats.cells_per_partition {
            return Err("histograms of partition sizes or cells differ".to_owned());
        }
        Ok(())
    }
}
