//! Random tables: options that make selections frequent, and SSTables close to every bound.

use std::collections::BTreeMap;

use compactor_strategy::droppable::DroppableTombstones;
use compactor_strategy::key_estimate::{KeyEstimate, KeySamples};
use compactor_strategy::options::Options;
use compactor_strategy::release::Release;
use compactor_strategy::sstable::{Sstable, SstableId};
use compactor_strategy::task::{Split, Task, TaskKind};
use compactor_strategy::token::{Position, Token};

use compactor_testkit::Random;

const MIB: u64 = 1 << 20;
const DAY_S: i64 = 86_400;

/// A strategy to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// By size.
    SizeTiered,
    /// By levels.
    Leveled,
    /// By windows of time.
    TimeWindow,
    /// By density.
    Unified,
}

impl Strategy {
    /// Its class.
    #[must_use]
    pub fn class(self) -> &'static str {
        match self {
            Strategy::SizeTiered => "SizeTieredCompactionStrategy",
            Strategy::Leveled => "LeveledCompactionStrategy",
            Strategy::TimeWindow => "TimeWindowCompactionStrategy",
            Strategy::Unified => "UnifiedCompactionStrategy",
        }
    }

    /// Whether it selects at random among equals.
    pub(super) fn selects_at_random(self) -> bool {
        self == Strategy::Unified
    }
}

/// Options of a table, and the generator of its SSTables.
pub(super) struct RandomTable {
    pub(super) strategy: Strategy,
    pub(super) release: Release,
    pub(super) options: Options,
    pub(super) now_s: i64,
    pub(super) gc_grace_s: i64,
    rng: Random,
    next_id: u64,
    /// Tokens are below this: the fewer, the more overlaps.
    tokens: u64,
    /// Sizes are around this.
    bytes: u64,
    /// Newest data of SSTables is at most this old, microseconds.
    age_us: u64,
    has_tombstones: bool,
    has_suspects: bool,
    /// Its timestamps are before 1970.
    is_old: bool,
    concurrent: usize,
}

impl RandomTable {
    pub(super) fn new(strategy: Strategy, release: Release, seed: u64) -> RandomTable {
        let mut rng = Random::new(seed.wrapping_mul(0x5851_f42d_4c95_7f2d));
        let options = random_options(strategy, &mut rng);
        RandomTable {
            strategy,
            release,
            options,
            now_s: 20_000 * DAY_S,
            gc_grace_s: *rng.pick(&[0, DAY_S, 10 * DAY_S]),
            next_id: 1,
            tokens: *rng.pick(&[10, 100, 1000, 1 << 40]),
            bytes: *rng.pick(&[MIB / 4, MIB, 4 * MIB]),
            age_us: *rng.pick(&[1, 24, 30 * 24]) * 3_600_000_000,
            has_tombstones: rng.one_in(2),
            has_suspects: rng.one_in(4),
            is_old: rng.one_in(8),
            concurrent: rng.index(4),
            rng,
        }
    }

    /// Number of selections.
    pub(super) fn steps(&mut self) -> usize {
        10 + self.rng.index(40)
    }

    pub(super) fn first_sstables(&mut self) -> Vec<Sstable> {
        // Few enough that all equal selections are compared.
        let most = match self.strategy {
            Strategy::Unified => 40,
            _ => *self.rng.pick(&[8, 40, 120]),
        };
        let count = self.rng.index(most);
        (0..count).map(|_| self.sstable()).collect()
    }

    pub(super) fn flushes(&mut self) -> bool {
        self.rng.one_in(3)
    }

    pub(super) fn flushed(&mut self) -> Vec<Sstable> {
        let count = 1 + self.rng.index(4);
        let flushed = (0..count).map(|_| Sstable {
            level: 0,
            ..self.sstable()
        });
        flushed.collect()
    }

    pub(super) fn pass_time(&mut self) {
        self.now_s += *self.rng.pick(&[1, 60, 599, 600, 601, 3600, DAY_S]);
    }

    /// Whether the first of the running tasks ends now.
    pub(super) fn ends_task(&mut self, running: usize) -> bool {
        running > self.concurrent || (running > 0 && self.rng.one_in(3))
    }

    pub(super) fn fails(&mut self) -> bool {
        self.rng.one_in(10)
    }

    /// Outputs of a task: a little smaller than its inputs, split as the task requires.
    pub(super) fn outputs(&mut self, task: &Task, inputs: &[Sstable]) -> Vec<Sstable> {
        let kept = inputs
            .iter()
            .filter(|input| !task.expired.contains(&input.id));
        let kept: Vec<&Sstable> = kept.collect();
        let (Some(first), Some(last)) = (
            kept.iter().map(|input| &input.first).min(),
            kept.iter().map(|input| &input.last).max(),
        ) else {
            return Vec::new();
        };
        let bytes: u64 = kept.iter().map(|input| input.data_bytes).sum();
        let bytes = match task.kind {
            TaskKind::LevelOnly => bytes,
            _ => (bytes / 100 * (70 + self.rng.below(31))).max(1),
        };
        let parts = match task.output.split {
            Split::MaxBytes(max) => bytes.div_ceil(max),
            _ => 1,
        };
        let max_timestamp = kept.iter().map(|input| input.max_timestamp).max();
        let min_timestamp = kept.iter().map(|input| input.min_timestamp).min();
        let deletion_time = kept.iter().map(|input| input.max_local_deletion_time).max();
        let spans = split_span(first, last, parts);
        let part_bytes = bytes / spans.len() as u64;
        let part = |(first, last): (Position, Position)| {
            let part = self.sized(part_bytes);
            // Different for each part, for the same reason as lengths.
            let max_timestamp = max_timestamp.unwrap_or(0) / 4096 * 4096 + part.id.0.cast_signed();
            Sstable {
                level: task.output.level,
                first,
                last,
                max_timestamp,
                min_timestamp: min_timestamp.unwrap_or(0),
                max_local_deletion_time: deletion_time.unwrap_or(0),
                ..part
            }
        };
        spans.into_iter().map(part).collect()
    }

    fn sstable(&mut self) -> Sstable {
        let bytes = match self.rng.below(4) {
            0 => self.bytes,
            1 => self.bytes / 2 * (1 + self.rng.below(8)),
            2 => self.rng.below(self.bytes),
            _ => self.bytes / 10 * (8 + self.rng.below(5)),
        };
        self.sized(bytes)
    }

    /// No two have the same length or timestamp: Cassandra orders equal ones by the hash of their names.
    fn sized(&mut self, bytes: u64) -> Sstable {
        let id = self.next_id;
        self.next_id += 1;
        let data_bytes = bytes / 4096 * 4096 + id;
        let [first, last] = self.bounds();
        let age_us = self.rng.below(self.age_us).cast_signed() / 4096 * 4096;
        let newest = self.now_s * if self.is_old { -1_000_000 } else { 1_000_000 };
        let max_timestamp = newest - age_us + id.cast_signed();
        let duration_us = self.rng.below(86_400_000_000).cast_signed();
        let is_expiring = self.has_tombstones && !self.rng.one_in(3);
        Sstable {
            bytes_on_disk: data_bytes + data_bytes / 16,
            min_timestamp: max_timestamp - duration_us,
            max_timestamp,
            max_local_deletion_time: if is_expiring {
                self.now_s - self.rng.below(20 * 86_400).cast_signed() + 5 * DAY_S
            } else {
                i64::MAX
            },
            level: self.level(),
            is_suspect: self.has_suspects && self.rng.one_in(15),
            created_ms: (self.now_s - self.rng.below(3 * 86_400).cast_signed()) * 1000
                + id.cast_signed(),
            token_space_coverage: self.coverage(),
            tombstones: self.tombstones(),
            keys: self.keys(first.token, last.token),
            ..Sstable::new(SstableId(id), data_bytes, first, last)
        }
    }

    fn coverage(&mut self) -> Option<f64> {
        match self.rng.below(4) {
            0 => Some(self.rng.below(1000) as f64 / 1000.0),
            _ => None,
        }
    }

    fn level(&mut self) -> u32 {
        match self.strategy {
            Strategy::Leveled => *self.rng.pick(&[0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 8]),
            _ => 0,
        }
    }

    fn bounds(&mut self) -> [Position; 2] {
        let width = match self.rng.below(4) {
            0 => self.tokens,
            1 => 1,
            _ => 1 + self.tokens / 20,
        };
        let from = self.rng.below(self.tokens);
        let to = (from + self.rng.below(width)).min(self.tokens);
        let keys = [self.rng.below(3) as u8, self.rng.below(3) as u8];
        let unit = self.token_unit();
        let [from, to] = [(from, keys[0]), (to, keys[1])]
            .map(|(token, key)| Position::new(Token(i128::from(token) * unit), &[key]));
        if from <= to { [from, to] } else { [to, from] }
    }

    /// Tokens are multiples of this: shards are parts of the whole ring.
    fn token_unit(&self) -> i128 {
        match self.strategy {
            Strategy::Unified => i128::from(i64::MAX / i64::try_from(self.tokens).unwrap_or(1)),
            _ => 1,
        }
    }

    fn tombstones(&mut self) -> DroppableTombstones {
        if !self.has_tombstones || self.rng.one_in(3) {
            return DroppableTombstones::default();
        }
        let thousandths = self.rng.below(600) as u32;
        let at = self.now_s - self.rng.below(12 * 86_400).cast_signed();
        // Different ratios, for the same reason as different lengths.
        let count = thousandths * 1_000_000 + self.next_id as u32;
        DroppableTombstones::new(&[(at, count)], 1_000_000_000)
    }

    fn keys(&mut self, first: Token, last: Token) -> KeyEstimate {
        let count = 1 + self.rng.below(20);
        let width = u64::try_from(last.0 - first.0 + 1).unwrap_or(u64::MAX);
        let token = |rng: &mut Random| Token(first.0 + i128::from(rng.below(width)));
        let mut tokens: Vec<Token> = (0..count).map(|_| token(&mut self.rng)).collect();
        tokens.sort_unstable();
        KeyEstimate {
            keys: count,
            partitions: count,
            samples: Some(KeySamples {
                tokens: tokens.into(),
                keys_per_sample: 1,
            }),
        }
    }
}

/// Consecutive parts of a span of tokens.
fn split_span(first: &Position, last: &Position, parts: u64) -> Vec<(Position, Position)> {
    let width = last.token.0 - first.token.0;
    let parts = i128::from(parts).clamp(1, (width / 2).max(1));
    let bound = |part: i128| first.token.0 + width * part / parts;
    let span = |part: i128| {
        let from = match part {
            0 => first.clone(),
            _ => Position::new(Token(bound(part) + 1), &[0]),
        };
        let to = if part + 1 == parts {
            last.clone()
        } else {
            Position::new(Token(bound(part + 1)), &[0])
        };
        (from, to)
    };
    (0..parts).map(span).collect()
}

fn any(rng: &mut Random, from: &[&'static str]) -> &'static str {
    let text: &&'static str = rng.pick(from);
    text
}

pub(super) fn random_options(strategy: Strategy, rng: &mut Random) -> Options {
    if strategy == Strategy::Unified {
        return unified_options(rng);
    }
    let mut options = BTreeMap::new();
    let mut set = |name: &str, value: &str| {
        options.insert(name.to_owned(), value.to_owned());
    };
    set("min_threshold", any(rng, &["2", "3", "4"]));
    set("max_threshold", any(rng, &["4", "6", "8", "32"]));
    if rng.one_in(2) {
        set("min_sstable_size", any(rng, &["0", "1000000"]));
    }
    if rng.one_in(3) {
        set("bucket_low", any(rng, &["0.3", "0.8", "-1", "-Infinity"]));
        set("bucket_high", any(rng, &["1.2", "2.5", "Infinity"]));
    }
    if rng.one_in(3) {
        set("tombstone_threshold", any(rng, &["0.05", "0.4"]));
    }
    if rng.one_in(4) {
        // The last one is too long for milliseconds.
        let intervals = ["0", "3600", "9223372036854775807"];
        set("tombstone_compaction_interval", any(rng, &intervals));
    }
    if rng.one_in(3) {
        set("unchecked_tombstone_compaction", "true");
    }
    if strategy == Strategy::TimeWindow {
        set(
            "compaction_window_unit",
            any(rng, &["MINUTES", "HOURS", "DAYS"]),
        );
        set(
            "compaction_window_size",
            any(rng, &["1", "3", "7", "2147483647"]),
        );
        if rng.one_in(4) {
            let resolutions = ["SECONDS", "MILLISECONDS", "NANOSECONDS"];
            set("timestamp_resolution", any(rng, &resolutions));
        }
        set(
            "expired_sstable_check_frequency_seconds",
            any(rng, &["0", "600", "3600"]),
        );
    }
    if strategy == Strategy::Leveled {
        set("sstable_size_in_mb", any(rng, &["1", "2", "3"]));
        set("fanout_size", any(rng, &["1", "2", "3", "4", "10"]));
        if rng.one_in(2) {
            set("single_sstable_uplevel", any(rng, &["true", "false"]));
        }
    }
    options
}

fn unified_options(rng: &mut Random) -> Options {
    let mut options = BTreeMap::new();
    let mut set = |name: &str, value: &str| {
        options.insert(name.to_owned(), value.to_owned());
    };
    let scaling = [
        "T4", "N", "L4", "T10, L4", "L4, T8", "T3, T2", "L2", "3, -1", "T6",
    ];
    set("scaling_parameters", any(rng, &scaling));
    if rng.one_in(2) {
        set("base_shard_count", any(rng, &["1", "2", "3", "6", "8"]));
    }
    set(
        "target_sstable_size",
        any(rng, &["1MiB", "3.5 MiB", "100MiB", "1*2^22B"]),
    );
    set("min_sstable_size", any(rng, &["0B", "300KiB", "500000B"]));
    if rng.one_in(2) {
        set("sstable_growth", any(rng, &["0", "1", "0.5", "25%"]));
    }
    if rng.one_in(2) {
        set("flush_size_override", any(rng, &["1MiB", "2MiB", "10MiB"]));
    }
    if rng.one_in(2) {
        set("max_sstables_to_compact", any(rng, &["-1", "4", "9", "40"]));
    }
    set(
        "expired_sstable_check_frequency_seconds",
        any(rng, &["1", "600", "3600"]),
    );
    set(
        "overlap_inclusion_method",
        any(rng, &["none", "single", "TRANSITIVE"]),
    );
    options
}
