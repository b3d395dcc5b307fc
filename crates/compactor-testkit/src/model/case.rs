//! A merge in memory: its inputs, its execution, and simpler variants.

use std::fmt;

use compactor_engine::input::layout_of;
use compactor_engine::row::PurgeLimit;
use compactor_sstable::Version;
use compactor_sstable::data::cell::Liveness;
use compactor_sstable::data::deletion_time::DeletionTime;

use super::choices::Choices;
use super::decode::decode;
use super::encode::encode;
use super::engine::{Input, Output, Settings, cursor, merge, serialization_header};
use super::expected_statistics::ExpectedStatistics;
use super::generate::{GC_BEFORE_S, Limits, NOW_S, TIMESTAMP, header, limits, schema, table};
use super::naive::{self, Purge};
use super::stored::stored;
use super::table::{Column, Header, Partition, Row, Schema, Table, Unfiltered, hex};

/// Inputs and settings of a merge.
#[derive(Clone)]
pub struct Case {
    pub schema: Schema,
    pub sources: Vec<Source>,
    pub settings: Settings,
    pub purge: PurgePlan,
}

/// One input.
#[derive(Clone)]
pub struct Source {
    pub header: Header,
    /// Table that is written.
    pub table: Table,
    /// Seed of deviations from the canonical encoding.
    pub liberties: Option<u64>,
    pub block_len: usize,
}

/// Purge limits of partitions.
#[derive(Clone, Copy, Debug)]
pub enum PurgePlan {
    Nothing,
    All,
    /// In partitions with an even key, deletions before this timestamp; in others, all.
    EvenBefore(i64),
}

impl PurgePlan {
    pub fn limit(self, key: &[u8]) -> PurgeLimit {
        match self {
            PurgePlan::Nothing => PurgeLimit::KeepAll,
            PurgePlan::EvenBefore(timestamp) if key.last().is_some_and(|b| b % 2 == 0) => {
                PurgeLimit::Before(timestamp)
            }
            PurgePlan::All | PurgePlan::EvenBefore(_) => PurgeLimit::Unlimited,
        }
    }
}

impl Source {
    pub fn input(&self, schema: &Schema) -> Input {
        let mut liberties = self.liberties.map(Choices::from_seed);
        let statistics = ExpectedStatistics::of(schema, &self.stored());
        Input {
            header: serialization_header(schema, &self.header),
            version: self.header.version,
            bytes: encode(schema, &self.header, &self.table, liberties.as_mut()).bytes,
            block_len: self.block_len,
            min_local_deletion_time: statistics.min_local_deletion_time,
            may_have_ttl: (statistics.min_ttl, statistics.max_ttl) != (0, 0),
        }
    }

    /// The table that readers find.
    pub fn stored(&self) -> Table {
        stored(&self.table, &self.header)
    }
}

/// Generates a random merge of up to `max_inputs` inputs.
pub fn case(choices: &mut Choices, max_inputs: usize) -> Case {
    let limits = limits(choices);
    case_within(choices, max_inputs, limits)
}

/// As [`case`], without times that some versions or headers cannot represent, and without values that compare
/// equal but differ in their bytes: a merge in steps may keep the bytes of another one.
pub fn moderate_case(choices: &mut Choices, max_inputs: usize) -> Case {
    let mut limits = limits(choices);
    limits.extremes = false;
    limits.aliases = false;
    case_within(choices, max_inputs, limits)
}

fn case_within(choices: &mut Choices, max_inputs: usize, limits: Limits) -> Case {
    let schema = schema(choices, limits);
    let mut sources = Vec::new();
    for _ in 0..=choices.below(max_inputs) {
        let header = header(choices, &schema, limits.extremes);
        let table = table(choices, &schema, &header, limits);
        let block_len = match limits.value_len {
            ..=300 => choices.pick(&[1, 7, 64, 200, 5000]),
            _ => choices.pick(&[300, 5000, 100_000]),
        };
        let liberties = choices.chance(50).then(|| choices.number());
        sources.push(Source {
            header,
            table,
            liberties,
            block_len,
        });
    }
    let output = header(choices, &schema, limits.extremes);
    let purge = match choices.below(4) {
        0 | 1 => PurgePlan::All,
        2 => PurgePlan::Nothing,
        _ => PurgePlan::EvenBefore(TIMESTAMP + choices.below(4) as i64),
    };
    let settings = Settings {
        output,
        now_s: NOW_S,
        gc_before_s: choices.pick(&[GC_BEFORE_S, NOW_S, NOW_S + 50, i64::MIN, 0]),
        output_block_len: choices.pick(&[16, 100, 4096, 1 << 20]),
        column_index_size: choices.pick(&[1, 60, 65_536]),
        strips_ttl: choices.chance(25),
    };
    let mut case = Case {
        schema,
        sources,
        settings,
        purge,
    };
    case.choose_output_header();
    case
}

impl Case {
    /// Sets a header for the output that can represent the inputs.
    pub fn choose_output_header(&mut self) {
        self.settings.output.columns = (0..self.schema.columns.len())
            .filter(|index| {
                self.sources
                    .iter()
                    .any(|s| s.header.columns.contains(index))
            })
            .collect();
        // Since `oa`, partition deletions before 1970 cannot be written, nor can range tombstones before 1970
        // in wide partitions.
        let is_early = |d: &DeletionTime| !d.is_live() && d.marked_for_delete_at < 0;
        let has_early = |partition: &Partition| {
            is_early(&partition.deletion)
                || partition
                    .unfiltereds
                    .iter()
                    .any(|unfiltered| matches!(unfiltered, Unfiltered::Marker { open, .. } if is_early(open)))
        };
        let mut partitions = self.sources.iter().flat_map(|source| source.table.values());
        if partitions.any(has_early) {
            self.settings.output.version = Version::Nb;
        }
    }

    pub fn inputs(&self) -> Vec<Input> {
        self.sources
            .iter()
            .map(|source| source.input(&self.schema))
            .collect()
    }

    pub fn run(&self) -> Result<Output, String> {
        self.merge(&self.inputs(), self.purge)
    }

    /// Merges other inputs of the same table.
    pub fn merge(&self, inputs: &[Input], purge: PurgePlan) -> Result<Output, String> {
        merge(&self.schema, inputs, &self.settings, |key| purge.limit(key))
            .map_err(|e| format!("the merge fails: {e}"))
    }

    pub fn expected(&self) -> Table {
        let mut tables: Vec<Table> = self.sources.iter().map(Source::stored).collect();
        if self.settings.strips_ttl {
            tables.iter_mut().for_each(naive::strip_ttl);
        }
        naive::merge(&self.schema, &tables, |key| Purge {
            now_s: self.settings.now_s,
            gc_before_s: match self.purge {
                PurgePlan::Nothing => i64::MIN,
                _ => self.settings.gc_before_s,
            },
            before: match self.purge.limit(key) {
                PurgeLimit::Before(timestamp) => Some(timestamp),
                PurgeLimit::Unlimited | PurgeLimit::KeepAll => None,
            },
        })
    }

    /// Reads `bytes` with a cursor.
    pub fn read(&self, header: &Header, bytes: &[u8], block_len: usize) -> Result<Table, String> {
        let version = header.version;
        let header = serialization_header(&self.schema, header);
        let layout = layout_of(&header, version).map_err(|e| format!("a layout: {e}"))?;
        let input = Input {
            header,
            version,
            bytes: bytes.to_vec(),
            block_len,
            min_local_deletion_time: 0,
            may_have_ttl: true,
        };
        decode(&self.schema, &mut cursor(&input, layout)).map_err(|e| format!("reading fails: {e}"))
    }

    /// Passes simpler variants to `try_it` until it returns true.
    pub fn simpler(&self, try_it: &mut dyn FnMut(Case) -> bool) -> bool {
        let mut variant = |change: &dyn Fn(&mut Case)| {
            let mut case = self.clone();
            change(&mut case);
            case.choose_output_header();
            try_it(case)
        };
        for index in 0..self.sources.len() {
            if self.sources.len() > 1 && variant(&|case| drop(case.sources.remove(index))) {
                return true;
            }
            for key in self.sources[index].table.keys() {
                let drop_key = |case: &mut Case| drop(case.sources[index].table.remove(key));
                if self.sources[index].table.len() > 1 && variant(&drop_key) {
                    return true;
                }
            }
            if self.sources[index].liberties.is_some()
                && variant(&|case| case.sources[index].liberties = None)
            {
                return true;
            }
            for (key, partition) in &self.sources[index].table {
                for simpler in simpler_partitions(partition) {
                    let replace = |case: &mut Case| {
                        let table = &mut case.sources[index].table;
                        if simpler.is_empty() {
                            drop(table.remove(key))
                        } else {
                            drop(table.insert(key.clone(), simpler.clone()))
                        }
                    };
                    if variant(&replace) {
                        return true;
                    }
                }
            }
        }
        false
    }
}

fn simpler_partitions(partition: &Partition) -> Vec<Partition> {
    let mut variants = Vec::new();
    let mut add = |change: &dyn Fn(&mut Partition)| {
        let mut variant = partition.clone();
        change(&mut variant);
        if variant != *partition {
            variants.push(variant);
        }
    };
    let is_row = |unfiltered: &Unfiltered| matches!(unfiltered, Unfiltered::Row { .. });
    add(&|p| p.deletion = DeletionTime::LIVE);
    add(&|p| p.static_row = Row::empty());
    add(&|p| p.unfiltereds.clear());
    add(&|p| p.unfiltereds.retain(is_row));
    add(&|p| p.unfiltereds.retain(|unfiltered| !is_row(unfiltered)));
    for index in 0..partition.unfiltereds.len() {
        if is_row(&partition.unfiltereds[index]) {
            add(&|p| drop(p.unfiltereds.remove(index)));
        }
    }
    for row in simpler_rows(&partition.static_row) {
        add(&|p| p.static_row = row.clone());
    }
    for (index, unfiltered) in partition.unfiltereds.iter().enumerate() {
        let Unfiltered::Row { clustering, row } = unfiltered else {
            continue;
        };
        for row in simpler_rows(row).into_iter().filter(|row| !row.is_empty()) {
            let clustering = clustering.clone();
            let replacement = Unfiltered::Row { clustering, row };
            add(&|p| p.unfiltereds[index] = replacement.clone());
        }
    }
    variants
}

fn simpler_rows(row: &Row) -> Vec<Row> {
    let mut variants = Vec::new();
    let mut add = |change: &dyn Fn(&mut Row)| {
        let mut variant = row.clone();
        change(&mut variant);
        if variant != *row {
            variants.push(variant);
        }
    };
    add(&|r| r.columns.clear());
    add(&|r| r.liveness = Liveness::EMPTY);
    add(&|r| (r.deletion, r.is_shadowable) = (DeletionTime::LIVE, false));
    for (column, data) in &row.columns {
        add(&|r| drop(r.columns.remove(column)));
        if data.deletion.is_live() {
            continue;
        }
        for index in 0..data.cells.len() {
            let mut data = data.clone();
            data.cells.remove(index);
            add(&|r| drop(r.columns.insert(*column, data.clone())));
        }
    }
    variants
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for column in &self.schema.clustering {
            writeln!(f, "clustering {column:?}")?;
        }
        for (index, column) in self.schema.columns.iter().enumerate() {
            let Column {
                name,
                column_type,
                is_static,
            } = column;
            let name = String::from_utf8_lossy(name);
            let kind = if *is_static { "static" } else { "" };
            writeln!(f, "#{index} {name} {column_type:?} {kind}")?;
        }
        for (number, source) in self.sources.iter().enumerate() {
            let Source {
                header,
                table,
                liberties,
                block_len,
            } = source;
            writeln!(
                f,
                "input {number}, blocks of {block_len}, {liberties:?}, {header:?}"
            )?;
            writeln!(f, "  {}", hex(&source.input(&self.schema).bytes))?;
            for ((_, key), partition) in table {
                writeln!(f, "  {} {partition:?}", hex(key))?;
            }
        }
        write!(f, "{:?} {:?}", self.settings, self.purge)
    }
}
