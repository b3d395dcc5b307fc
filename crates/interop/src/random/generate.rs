//! Generation of a plan from a seed: mutations of few rows at few timestamps, most of them edge cases.

use compactor::TombstoneOption;

use super::counters;
use super::plan::{Bound, Cell, Deletion, Hex, Input, Mutation, Partition, Plan};
use super::table::{Kind, Shape, Table, Values, compression};
use crate::cassandra::Mode;
use crate::scenarios::T0;
use compactor_testkit::Random;

/// Last deletion time of a 32-bit clock: the next value means none.
const LAST_OF_2038: i64 = 2_147_483_646;

/// Beyond 2038, which versions since oa can store, but not up to their limit: Cassandra writes the difference to the
/// least deletion time as a 32-bit number, and reads a wrong one if it does not fit.
const FAR: i64 = 3_200_000_000;

/// Before any gc_before.
const LONG_AGO: i64 = T0 - 1_000_000;

/// The most that CQL accepts, 20 years.
const LONGEST_TTL: i32 = 630_720_000;

/// Liveness with this TTL is expired from the start: only views write it.
const EXPIRED_TTL: i32 = i32::MAX;

/// The plan of a seed, for Cassandra 6 in any mode.
#[must_use]
pub fn plan(seed: u64) -> Plan {
    plan_for(seed, None)
}

/// The plan of a seed, whose output has the version of this mode.
#[must_use]
pub fn plan_for(seed: u64, mode: Option<Mode>) -> Plan {
    let mut rng = Random::new(seed.wrapping_mul(0x5851_F42D_4C95_7F2D));
    let any = *rng.pick(&[Mode::Nb, Mode::Oa, Mode::Pa, Mode::Pa, Mode::Ea, Mode::Ea]);
    let mode = mode.unwrap_or(any);
    let versions: &[&str] = match mode {
        Mode::Nb => &["nb-big"],
        Mode::Oa => &["oa-big", "oa-big", "nb-big"],
        Mode::Pa => &["pa-big", "pa-big", "oa-big", "nb-big", "ea-bti", "da-bti"],
        Mode::Da => &["da-bti", "da-bti", "oa-big", "nb-big"],
        Mode::Ea => &["ea-bti", "ea-bti", "da-bti", "pa-big", "oa-big", "nb-big"],
    };
    let table = Table::generate(&mut rng);
    let now_s = T0 + 1000;
    let gc_before_s = match rng.below(6) {
        0 => None,
        1 | 2 => Some(now_s),
        3 => Some(now_s - 864_000),
        _ => Some(now_s - 500),
    };
    let times = Times::generate(&mut rng, now_s, gc_before_s, &table);
    let most = if rng.one_in(3) { 7 } else { 3 };
    let count = 2 + rng.below(most);
    let one_version = rng.one_in(3);
    let first = *rng.pick(versions);
    let one_compression = rng.one_in(2).then(|| compression(&mut rng));
    let older = table.older();
    let has_cql = table.has_cql();
    let grown_from = if has_cql && table.has_grown() {
        rng.below(count + 1)
    } else {
        0
    };
    let mut inputs = Vec::new();
    for n in 0..count {
        let table = if n < grown_from { &older } else { &table };
        let version = if one_version {
            first
        } else {
            *rng.pick(versions)
        };
        let mut schema = table.schema.clone();
        schema.compression = one_compression
            .clone()
            .unwrap_or_else(|| compression(&mut rng));
        let mood = *rng.pick(&[
            Mood::Mixed,
            Mood::Mixed,
            Mood::Mixed,
            Mood::Mixed,
            Mood::Deleting,
            Mood::Dying,
            Mood::Inserting,
            Mood::Inserting,
            Mood::Inserting,
        ]);
        let mut writer = Writer {
            rng: &mut rng,
            table,
            times: &times,
            mood,
            latest: if version.starts_with('n') {
                LAST_OF_2038
            } else {
                times.latest
            },
        };
        let mut partitions = writer.partitions();
        if times.seconds.contains(&FAR) {
            // Cassandra cannot read a header whose least deletion time is beyond 2038.
            let deletion = (times.timestamps[0].max(0), T0);
            partitions[0]
                .mutations
                .push(Mutation::Partition { deletion });
        }
        inputs.push(Input {
            version: version.to_owned(),
            schema,
            opened_early: rng.one_in(2),
            idle_markers: rng.one_in(3),
            partitions,
        });
    }
    // A dropped column of a multi-cell user type is kept as a tuple, and cannot be added again with its type.
    let mut schema = table.schema.clone();
    if has_cql && grown_from == 0 && rng.one_in(5) {
        schema = table.after_drops(&mut rng, &times.timestamps);
    }
    let with_schema = has_cql && (grown_from > 0 || !schema.dropped.is_empty() || rng.one_in(5));
    let repaired_at = if rng.one_in(10) { T0 * 1000 - 1 } else { 0 };
    let mut others = usize::from(count > 2 && rng.one_in(8));
    let mut provided = TombstoneOption::None;
    if rng.one_in(3) {
        others = 1 + rng.below(count - 1) as usize;
        provided = *rng.pick(&[TombstoneOption::Row, TombstoneOption::Cell]);
    }
    // A view has no static columns and no counters.
    let can_be_view =
        matches!(table.shape, Shape::Plain | Shape::View | Shape::Wide) && table.statics.is_empty();
    let mut plan = Plan {
        seed,
        output: mode.version().to_owned(),
        now_s,
        gc_before_s,
        schema,
        with_schema,
        repaired_at,
        inputs,
        others,
        provided: provided.name().to_owned(),
        // Drawn last, so that plans of existing seeds change only in this.
        strict_liveness: can_be_view && rng.one_in(if table.shape == Shape::View { 2 } else { 6 }),
    };
    plan.compress_as_newest();
    plan
}

/// The few timestamps and times of one plan.
#[derive(Debug)]
struct Times {
    timestamps: Vec<i64>,
    /// Timestamps of shadowable deletions: never those of row deletions, since of two equal ones the first read is
    /// kept, and Cassandra reads inputs in the order of a hash set.
    shadowable: Vec<i64>,
    seconds: Vec<i64>,
    latest: i64,
    ttls: Vec<i32>,
}

impl Times {
    fn generate(rng: &mut Random, now_s: i64, gc_before_s: Option<i64>, table: &Table) -> Times {
        let micros = T0 * 1_000_000;
        let styles: [&[i64]; 4] = [
            &[10, 12, 14, 16],
            &[micros, micros + 2, micros + 4, micros + 1_000_000],
            &[-4, -2, 0, 2],
            &[i64::MIN + 1, -1, 0, 1, micros, i64::MAX - 1, i64::MAX],
        ];
        // Like a partition deletion, an open deletion in a promoted index cannot be negative.
        let styles_for = if table.has_large_partitions() {
            2
        } else if table.shape == Shape::View {
            3
        } else {
            4
        };
        let style = rng.below(styles_for);
        let timestamps = styles[usize::try_from(style).unwrap_or_default()].to_vec();
        let shadowable = timestamps
            .iter()
            .map(|timestamp| timestamp.saturating_add(1))
            .collect();
        let mut seconds = vec![now_s - 1, now_s, now_s + 1, T0, T0 + 1];
        if let Some(gc_before) = gc_before_s {
            seconds.extend([gc_before - 1, gc_before, gc_before + 1]);
        }
        let mut latest = FAR;
        match rng.below(8) {
            0 => {
                latest = LAST_OF_2038;
                seconds.extend([1, LAST_OF_2038]);
            }
            1 => seconds.extend([LAST_OF_2038, LAST_OF_2038 + 1, FAR]),
            _ => {}
        }
        Times {
            timestamps,
            shadowable,
            seconds,
            latest,
            ttls: vec![1, 60, 500, 500, 501, LONGEST_TTL],
        }
    }
}

/// Rows that one input inserts into a partition, at most.
const MOST_INSERTED: usize = 150;

/// Prevailing content of an input; one that has expired entirely may be dropped unread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Mixed,
    Deleting,
    Dying,
    /// Adjacent rows as INSERT writes them: cells have the times of their row.
    Inserting,
}

impl Mood {
    /// Whether the content is neither mostly deleted nor mostly expired.
    fn is_mixed(self) -> bool {
        matches!(self, Mood::Mixed | Mood::Inserting)
    }
}

/// Options of insertions.
#[derive(Debug, Clone, Copy)]
struct Style {
    /// Whether some columns of a row are left out.
    has_gaps: bool,
    /// Whether multi-cell values are added to rather than replaced.
    adds: bool,
}

struct Writer<'a> {
    rng: &'a mut Random,
    table: &'a Table,
    times: &'a Times,
    mood: Mood,
    latest: i64,
}

impl Writer<'_> {
    fn partitions(&mut self) -> Vec<Partition> {
        if self.mood == Mood::Inserting && self.table.shape != Shape::Counter {
            return self.inserted_partitions();
        }
        let mut partitions: Vec<Partition> = Vec::new();
        let count = match self.table.shape {
            Shape::Wide => 60 + self.rng.below(120),
            _ if self.table.keys.len() > 20 => self.table.keys.len() as u64,
            _ => 1 + self.rng.below(40),
        };
        for _ in 0..count {
            let key = self.rng.pick(&self.table.keys).clone();
            let mutation = self.mutation();
            match partitions.iter_mut().find(|partition| partition.key == key) {
                Some(partition) => partition.mutations.push(mutation),
                None => partitions.push(Partition {
                    key,
                    mutations: vec![mutation],
                }),
            }
        }
        partitions
    }

    fn inserted_partitions(&mut self) -> Vec<Partition> {
        let keys = self.table.keys.clone();
        // This key is never left out: an SSTable has at least one partition.
        let always = self.rng.pick(&keys).clone();
        let times = self.insertion();
        let mut partitions = Vec::new();
        for key in keys {
            if key != always && self.rng.one_in(2) {
                continue;
            }
            let mutations = self.insertions(times);
            partitions.push(Partition { key, mutations });
        }
        partitions
    }

    /// Rows of a partition, most of them at these times. A row's first clustering decides whether it is inserted, so
    /// that rows that only one input has are adjacent.
    fn insertions(&mut self, times: (i64, i32, i64)) -> Vec<Mutation> {
        let style = Style {
            has_gaps: self.rng.one_in(2),
            adds: self.rng.one_in(2),
        };
        let mut mutations = Vec::new();
        if !self.table.statics.is_empty() && self.rng.one_in(2) {
            let row = self.insert(None, times, style);
            if !row.is_empty() {
                mutations.push(row);
            }
        }
        for clustering in self.adjacent_clusterings() {
            let times = if self.rng.one_in(25) {
                self.insertion()
            } else {
                times
            };
            mutations.push(self.insert(Some(clustering), times, style));
            if self.rng.one_in(40) {
                mutations.push(self.mutation());
            }
        }
        mutations
    }

    /// Adjacent clusterings, at least one.
    fn adjacent_clusterings(&mut self) -> Vec<Vec<Option<Hex>>> {
        let mut pools = self.table.clusterings.iter();
        let Some(first) = pools.next() else {
            return vec![Vec::new()];
        };
        let always = self.rng.pick(first).clone();
        let written = first
            .iter()
            .filter(|value| **value == always || self.rng.one_in(2));
        let mut clusterings: Vec<Vec<Option<Hex>>> =
            written.map(|value| vec![Some(value.clone())]).collect();
        for pool in pools {
            let longer = |shorter: Vec<Option<Hex>>| {
                pool.iter()
                    .map(move |value| [&shorter[..], &[Some(value.clone())]].concat())
            };
            clusterings = clusterings.into_iter().flat_map(longer).collect();
            clusterings.truncate(MOST_INSERTED);
        }
        clusterings.truncate(MOST_INSERTED);
        clusterings
    }

    /// A row, or the static row, with every column that it does not leave out.
    fn insert(
        &mut self,
        clustering: Option<Vec<Option<Hex>>>,
        (timestamp, ttl, expiry): (i64, i32, i64),
        style: Style,
    ) -> Mutation {
        let table = self.table;
        let columns = match clustering {
            Some(_) => &table.regulars,
            None => &table.statics,
        };
        let expires = (ttl > 0).then_some(expiry);
        let mut complex = Vec::new();
        let mut cells = Vec::new();
        for column in columns {
            if style.has_gaps && self.rng.one_in(5) {
                continue;
            }
            match &column.kind {
                Kind::Simple(values) => {
                    let value = self.rng.pick(values).clone();
                    cells.push((column.name.clone(), None, timestamp, ttl, expires, value));
                }
                Kind::MultiCell(items) => {
                    if !style.adds {
                        // The least timestamp stands for no deletion.
                        let before = timestamp.max(i64::MIN + 2) - 1;
                        let second = *self.rng.pick(&self.times.seconds);
                        complex.push((column.name.clone(), before, second.min(self.latest)));
                    }
                    for (path, values) in items {
                        if self.rng.one_in(3) {
                            continue;
                        }
                        let value = self.rng.pick(values).clone();
                        let path = Some(path.clone());
                        cells.push((column.name.clone(), path, timestamp, ttl, expires, value));
                    }
                }
                Kind::Counter | Kind::Counters(_) => {}
            }
        }
        let liveness = clustering.is_some().then_some((timestamp, ttl, expiry));
        Mutation::Row {
            clustering,
            liveness,
            deletion: None,
            shadowable: false,
            complex,
            cells,
        }
    }

    /// Timestamp, TTL and expiry of a row and its cells.
    fn insertion(&mut self) -> (i64, i32, i64) {
        let timestamp = *self.rng.pick(&self.times.timestamps);
        if self.rng.one_in(3) {
            let (ttl, expiry) = self.expiry();
            return (timestamp, ttl, expiry);
        }
        (timestamp, 0, 0)
    }

    fn mutation(&mut self) -> Mutation {
        let table = self.table;
        let wide = table.shape == Shape::Wide;
        match self.rng.below(20) {
            0 if !wide || self.rng.one_in(20) => {
                let (timestamp, second) = self.deletion();
                // Since oa the sign of a partition deletion's timestamp is the flag of its absence.
                Mutation::Partition {
                    deletion: (timestamp.max(0), second),
                }
            }
            1..=4 if !self.table.clusterings.is_empty() => Mutation::Range {
                start: self.bound(),
                end: self.bound(),
                deletion: self.deletion(),
            },
            5 | 6 => self.row_deletion(),
            7 | 8 if !self.table.statics.is_empty() => self.cells(None, &table.statics),
            _ => {
                let clustering = Some(self.clustering());
                self.cells(clustering, &table.regulars)
            }
        }
    }

    fn row_deletion(&mut self) -> Mutation {
        let mut deletion = self.deletion();
        let shadowable = self.table.shape == Shape::View && self.rng.one_in(2);
        if shadowable {
            deletion.0 = *self.rng.pick(&self.times.shadowable);
        }
        Mutation::Row {
            clustering: Some(self.clustering()),
            liveness: None,
            deletion: Some(deletion),
            shadowable,
            complex: Vec::new(),
            cells: Vec::new(),
        }
    }

    /// Liveness and some cells, or deletions of whole columns: a batch that does both is two of these.
    fn cells(&mut self, clustering: Option<Vec<Option<Hex>>>, columns: &[Values]) -> Mutation {
        let mut complex = Vec::new();
        let mut cells = Vec::new();
        let deleting = self.rng.one_in(6);
        let few = 1 + columns.len() as u64 / 3;
        for column in columns {
            if !self.rng.one_in(few) {
                continue;
            }
            match &column.kind {
                Kind::MultiCell(_) | Kind::Counters(_) if deleting => {
                    let (timestamp, second) = self.deletion();
                    complex.push((column.name.clone(), timestamp, second));
                }
                Kind::MultiCell(items) => {
                    for (path, values) in items {
                        if self.rng.one_in(2) {
                            let cell = self.cell(&column.name, Some(path.clone()), values);
                            cells.push(cell);
                        }
                    }
                }
                Kind::Simple(values) => cells.push(self.cell(&column.name, None, values)),
                Kind::Counter => cells.push(self.counter(&column.name, None)),
                Kind::Counters(paths) => {
                    for path in paths {
                        if self.rng.one_in(2) {
                            cells.push(self.counter(&column.name, Some(path.clone())));
                        }
                    }
                }
            }
        }
        let is_row = clustering.is_some() && self.table.shape != Shape::Counter;
        let liveness = (is_row && (cells.is_empty() || !self.rng.one_in(3)) && complex.is_empty())
            .then(|| self.liveness());
        Mutation::Row {
            clustering,
            liveness,
            deletion: None,
            shadowable: false,
            complex,
            cells,
        }
    }

    fn cell(&mut self, name: &str, path: Option<Hex>, values: &[Hex]) -> Cell {
        let timestamp = *self.rng.pick(&self.times.timestamps);
        let value = self.rng.pick(values).clone();
        let what = match self.mood {
            Mood::Mixed | Mood::Inserting => self.rng.below(6),
            Mood::Deleting => 0,
            Mood::Dying => 1,
        };
        match what {
            0 => {
                let second = self.second();
                let none = Hex(Vec::new());
                (name.to_owned(), path, timestamp, 0, Some(second), none)
            }
            1 | 2 => {
                let (ttl, expiry) = self.expiry();
                (name.to_owned(), path, timestamp, ttl, Some(expiry), value)
            }
            _ => (name.to_owned(), path, timestamp, 0, None, value),
        }
    }

    fn counter(&mut self, name: &str, path: Option<Hex>) -> Cell {
        let timestamp = *self.rng.pick(&self.times.timestamps);
        if self.rng.one_in(8) {
            let second = self.second();
            let none = Hex(Vec::new());
            return (name.to_owned(), path, timestamp, 0, Some(second), none);
        }
        let context = Hex(counters::context(self.rng));
        (name.to_owned(), path, timestamp, 0, None, context)
    }

    fn liveness(&mut self) -> (i64, i32, i64) {
        let timestamp = *self.rng.pick(&self.times.timestamps);
        if self.table.shape == Shape::View && self.rng.one_in(4) {
            return (timestamp, EXPIRED_TTL, self.second());
        }
        if !self.mood.is_mixed() || self.rng.one_in(3) {
            let (ttl, expiry) = self.expiry();
            return (timestamp, ttl, expiry);
        }
        (timestamp, 0, 0)
    }

    /// A TTL and its expiration: at an edge, or counted from one.
    fn expiry(&mut self) -> (i32, i64) {
        let ttl = *self.rng.pick(&self.times.ttls);
        let second = self.second();
        let begun = if self.mood.is_mixed() && self.rng.one_in(2) {
            second
        } else {
            second - i64::from(ttl)
        };
        (ttl, (begun.max(0) + i64::from(ttl)).min(self.latest))
    }

    fn deletion(&mut self) -> Deletion {
        (*self.rng.pick(&self.times.timestamps), self.second())
    }

    fn second(&mut self) -> i64 {
        if !self.mood.is_mixed() && !self.rng.one_in(50) {
            return LONG_AGO + i64::from(self.rng.one_in(2));
        }
        (*self.rng.pick(&self.times.seconds)).min(self.latest)
    }

    fn clustering(&mut self) -> Vec<Option<Hex>> {
        let columns = self.table.clusterings.iter();
        let mut values: Vec<Option<Hex>> = columns
            .map(|pool| Some(self.rng.pick(pool).clone()))
            .collect();
        if self.table.shape == Shape::Dense && self.rng.one_in(3) {
            let from = 1 + self.rng.index(values.len());
            for value in values.iter_mut().skip(from) {
                *value = None;
            }
        }
        values
    }

    /// Mostly of one clustering column: whole ranges of a partition hide everything else.
    fn bound(&mut self) -> Bound {
        let columns = self.table.clusterings.len();
        let length = if self.rng.one_in(8) {
            0
        } else {
            1 + self.rng.index(columns)
        };
        Bound {
            values: self.table.clusterings[..length]
                .iter()
                .map(|pool| self.rng.pick(pool).clone())
                .collect(),
            inclusive: self.rng.one_in(2),
        }
    }
}
