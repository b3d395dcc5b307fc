//! Checks of the Bloom filter and the summary's samples against the partition keys.

use compactor_sstable::Component;
use compactor_sstable::big::Summary;
use compactor_sstable::big::summary::{BASE_SAMPLING_LEVEL, DEFAULT_MIN_INDEX_INTERVAL};
use compactor_sstable::bloom_filter::{BloomFilter, BloomSpec, FilterBuilder};
use compactor_sstable::partitioner::KeyHash;

use super::finding::{Findings, Location};

/// Check of `Filter.db` against every key.
#[derive(Debug)]
pub(super) struct FilterCheck {
    filter: BloomFilter,
    /// A filter of the same size that holds the keys seen.
    rebuilt: Option<FilterBuilder>,
    /// Whether missing bits were already reported with the keys that need them.
    is_missing_named: bool,
}

impl FilterCheck {
    pub(super) fn new(filter: BloomFilter) -> FilterCheck {
        let rebuilt = (filter.hash_count() > 0).then(|| filter.empty_like());
        FilterCheck {
            filter,
            rebuilt: rebuilt.map(FilterBuilder::new),
            is_missing_named: false,
        }
    }

    /// Checks that the filter contains a key: a false negative hides the partition from reads.
    pub(super) fn key(
        &mut self,
        findings: &Findings,
        hash: &KeyHash,
        describe: impl Fn() -> String,
    ) {
        if !self.filter.may_contain_key(hash) {
            self.is_missing_named = true;
            self.missing(
                findings,
                Location::of(Component::Filter).in_partition(describe()),
                "less: reads would not find this partition",
            );
        }
        self.key_unnamed(hash);
    }

    /// As [`FilterCheck::key`], but compares the filter once all keys are known, which is much faster but does not
    /// identify the partition.
    #[inline]
    pub(super) fn key_unnamed(&mut self, hash: &KeyHash) {
        if let Some(rebuilt) = &mut self.rebuilt {
            rebuilt.add_key(hash);
        }
    }

    /// Checks, where only the number of keys is known, that the filter is as full as they make it. That finds bits lost
    /// in a block, not single ones.
    pub(super) fn density(&mut self, findings: &Findings, keys: u64) {
        if !self.is_missing_named
            && let Some((at, expected, found)) = sparse_block(&self.filter, keys)
        {
            findings.damage(
                Location::offset(Component::Filter, 8 + at as u64),
                "filter.bits",
                format!(
                    "about {expected:.0} bits set in {DENSITY_BLOCK} bytes, with {keys} partitions"
                ),
                format!("{found}: reads would not find some partitions"),
            );
        }
    }

    fn missing(&self, findings: &Findings, place: Location, found: impl Into<String>) {
        let expected = format!("{} bits set for each key", self.filter.hash_count());
        findings.damage(place, "filter.bits", expected, found);
    }

    /// Checks, once all keys were seen, for missing bits, for bits that no key sets, and the false positive chance of
    /// the filter.
    pub(super) fn finish(
        &mut self,
        findings: &Findings,
        has_all_keys: bool,
        fp_chance: Option<f64>,
    ) {
        let Some(rebuilt) = self.rebuilt.take().map(FilterBuilder::finish) else {
            return;
        };
        let (found, wanted) = (self.filter.bits(), rebuilt.bits());
        if !self.is_missing_named
            && let Some((at, count)) = more_bits(wanted, found)
        {
            self.missing(
                findings,
                Location::offset(Component::Filter, 8 + at as u64),
                format!("{count} bits less: reads would not find some partitions"),
            );
        }
        if has_all_keys && let Some((at, count)) = more_bits(found, wanted) {
            // They cause useless reads, but hide nothing. Only a scrub that gave a partition up after its key was
            // added leaves such bits (`BigTableWriter.resetAndTruncate`).
            findings.damage(
                Location::offset(Component::Filter, 8 + at as u64),
                "filter.extra_bits",
                "only the bits of keys that Data.db holds",
                format!("{count} bits more"),
            );
        }
        let spec = fp_chance.map(BloomSpec::for_fp_chance);
        if let Some(Ok(spec)) = spec
            && spec.hash_count != self.filter.hash_count()
        {
            findings.note(
                Location::offset(Component::Filter, 0),
                "filter.hash_count",
                format!(
                    "{} for the false positive chance in Statistics.db",
                    spec.hash_count
                ),
                self.filter.hash_count().to_string(),
            );
        }
    }
}

/// Bytes of a filter whose set bits are counted together. A block of zeros this long is found in any filter that is as
/// full as Cassandra makes them.
const DENSITY_BLOCK: usize = 512;
/// Standard deviations that the number of set bits of a block may be below the expected one: less than one sound block
/// in 10^15 is.
const DENSITY_DEVIATIONS: f64 = 8.0;

/// Returns the first block with far fewer bits than `keys` random keys set, with the expected and actual number.
fn sparse_block(filter: &BloomFilter, keys: u64) -> Option<(usize, f64, u32)> {
    let bits_set = keys as f64 * f64::from(filter.hash_count());
    let share = -(-bits_set / filter.bit_count() as f64).exp_m1();
    let mut blocks = filter.bits().chunks(DENSITY_BLOCK).zip(0..);
    blocks.find_map(|(block, index)| {
        let expected = 8.0 * block.len() as f64 * share;
        let deviation = (expected * (1.0 - share)).sqrt();
        let found = block.iter().map(|byte| byte.count_ones()).sum::<u32>();
        let is_sparse = f64::from(found) < expected - DENSITY_DEVIATIONS * deviation;
        is_sparse.then_some((index * DENSITY_BLOCK, expected, found))
    })
}

/// Returns the first byte with a bit that `other` lacks, and the number of such bits.
fn more_bits(bits: &[u8], other: &[u8]) -> Option<(usize, u64)> {
    let more = |(bits, other): (&u8, &u8)| bits & !other;
    let first = bits.iter().zip(other).map(more).position(|m| m != 0)?;
    let rest = bits[first..].iter().zip(&other[first..]).map(more);
    Some((first, rest.map(|m| u64::from(m.count_ones())).sum()))
}

/// Check of `Summary.db` against every entry of `Index.db`.
#[derive(Debug)]
pub(crate) struct SummaryCheck {
    summary: Summary,
    /// Samples compared so far.
    next: usize,
    /// Ordinal of the key of the next sample.
    next_ordinal: Option<u64>,
    /// Indices of the samples kept of each 128, ascending.
    kept: Vec<u64>,
}

impl SummaryCheck {
    pub(super) fn new(summary: Summary) -> SummaryCheck {
        let kept = kept_samples(summary.sampling_level);
        let mut check = SummaryCheck {
            summary,
            next: 0,
            next_ordinal: None,
            kept,
        };
        check.next_ordinal = check.ordinal_of(0);
        check
    }

    /// Returns the ordinal of the key of sample `index`.
    fn ordinal_of(&self, index: usize) -> Option<u64> {
        let (round, place) = (
            index / self.kept.len().max(1),
            index % self.kept.len().max(1),
        );
        let sample = round as u64 * u64::from(BASE_SAMPLING_LEVEL) + self.kept.get(place)?;
        sample.checked_mul(u64::from(self.summary.min_index_interval))
    }

    /// Checks entry `ordinal` of `Index.db`, at `offset`.
    pub(super) fn entry(&mut self, findings: &Findings, ordinal: u64, key: &[u8], offset: u64) {
        if self.next_ordinal != Some(ordinal) {
            return;
        }
        let index = self.next;
        let Some((sample, position)) = self.summary.entry(index) else {
            findings.damage(
                Location::of(Component::Summary),
                "summary.entry",
                format!("a sample of key {ordinal}"),
                format!("{} samples, none of it", self.summary.len()),
            );
            self.next_ordinal = None;
            return;
        };
        if sample != key {
            findings.damage(
                Location::of(Component::Summary),
                "summary.key",
                format!(
                    "sample {index} to be key {ordinal} of Index.db, {}",
                    super::short_hex(key)
                ),
                super::short_hex(sample),
            );
        }
        if position != offset {
            findings.damage(
                Location::of(Component::Summary),
                "summary.position",
                format!("sample {index} to point to offset {offset} of Index.db"),
                position.to_string(),
            );
        }
        self.next += 1;
        self.next_ordinal = self.ordinal_of(self.next);
    }

    /// Completes the check once `Index.db` has been read to its end.
    pub(super) fn finish(&self, findings: &Findings, keys: u64, first: &[u8], last: &[u8]) {
        if self.next < self.summary.len() {
            findings.damage(
                Location::of(Component::Summary),
                "summary.entry",
                format!("{} samples of the {keys} keys in Index.db", self.next),
                self.summary.len().to_string(),
            );
        }
        let interval = self.summary.min_index_interval;
        // Later samples confirm the interval; a single sample does not.
        if self.summary.len() <= 1 && interval != DEFAULT_MIN_INDEX_INTERVAL {
            findings.note(
                Location::offset(Component::Summary, 0),
                "summary.min_index_interval",
                format!(
                    "{DEFAULT_MIN_INDEX_INTERVAL}, or the table's min_index_interval; Cassandra \
                     rebuilds the file if they differ"
                ),
                interval.to_string(),
            );
        }
        let full = keys.div_ceil(u64::from(self.summary.min_index_interval));
        let stored = self.summary.size_at_full_sampling;
        if stored > 0 && full != u64::from(stored) {
            findings.damage(
                Location::offset(Component::Summary, 20),
                "summary.size_at_full_sampling",
                format!(
                    "{full}, of {keys} keys every {}th",
                    self.summary.min_index_interval
                ),
                stored.to_string(),
            );
        }
        let ends = [
            ("summary.first_key", "first", &self.summary.first_key, first),
            ("summary.last_key", "last", &self.summary.last_key, last),
        ];
        for (structure, which, found, wanted) in ends {
            if found != wanted {
                findings.damage(
                    Location::of(Component::Summary),
                    structure,
                    format!("the {which} key in Index.db, {}", super::short_hex(wanted)),
                    super::short_hex(found),
                );
            }
        }
    }
}

/// Returns the indices of the samples kept of 128 at a sampling level, ascending (`Downsampling.getSamplingPattern`,
/// `IndexSummaryBuilder.downsample`).
fn kept_samples(level: u32) -> Vec<u64> {
    let base = u64::from(BASE_SAMPLING_LEVEL);
    let removed: Vec<u64> = pattern(base)
        .into_iter()
        .take(BASE_SAMPLING_LEVEL.saturating_sub(level) as usize)
        .collect();
    (0..base)
        .filter(|sample| !removed.contains(sample))
        .collect()
}

/// Returns the order in which samples are dropped.
fn pattern(level: u64) -> Vec<u64> {
    if level <= 1 {
        return vec![0];
    }
    let half = pattern(level / 2);
    let odd = half.iter().map(|&index| 2 * index + 1);
    let even = half.iter().map(|&index| 2 * index);
    odd.chain(even).collect()
}

#[cfg(test)]
mod tests {
    use compactor_sstable::Version;
    use compactor_sstable::descriptor::Descriptor;
    use compactor_sstable::partitioner::Partitioner;
    use compactor_sstable::sstable_id::SstableId;

    use super::*;

    #[test]
    fn lost_blocks_are_found_by_their_density() {
        for (keys, room, fp_chance) in [(1, 1, 0.1), (9, 200, 0.01), (40_000, 40_000, 0.001)] {
            for seed in 0..50_u32 {
                let mut filter = BloomFilter::for_keys(room, fp_chance).unwrap().unwrap();
                let key = |number: u32| [seed.to_be_bytes(), number.to_be_bytes()].concat();
                let hash = |number| Partitioner::Murmur3.hash_key(&key(number));
                (0..keys).for_each(|number| filter.add_key(&hash(number)));
                assert_eq!(sparse_block(&filter, u64::from(keys)), None);
            }
        }
        let mut bytes = Vec::new();
        let mut filter = BloomFilter::for_keys(20_000, 0.01).unwrap().unwrap();
        let hash = |number: u32| Partitioner::Murmur3.hash_key(&number.to_be_bytes());
        (0..20_000).for_each(|number| filter.add_key(&hash(number)));
        filter.write(&mut bytes);
        bytes[8 + 3 * DENSITY_BLOCK..][..DENSITY_BLOCK].fill(0);
        let filter = BloomFilter::parse(&bytes, Version::Oa).unwrap();
        let (at, _, found) = sparse_block(&filter, 20_000).unwrap();
        assert_eq!((at, found), (3 * DENSITY_BLOCK, 0));
    }

    /// Every missing or extra bit is also found without key names.
    #[test]
    fn every_bit_is_checked() {
        let hash = |number: u32| Partitioner::Murmur3.hash_key(&number.to_be_bytes());
        let mut intact = BloomFilter::for_keys(20, 0.01).unwrap().unwrap();
        (0..20).for_each(|number| intact.add_key(&hash(number)));
        let findings_of = |filter: BloomFilter| {
            let descriptor = Descriptor::new("table", Version::Oa, SstableId::Sequence(1));
            let findings = Findings::new(descriptor, 100);
            let mut check = FilterCheck::new(filter);
            (0..20).for_each(|number| check.key_unnamed(&hash(number)));
            check.finish(&findings, true, None);
            findings.finish().0
        };
        assert_eq!(findings_of(intact.clone()).len(), 0);
        let mut bytes = Vec::new();
        intact.write(&mut bytes);
        for bit in 0..8 * intact.bits().len() {
            let (at, mask) = (8 + bit / 8, 1 << (bit % 8));
            bytes[at] ^= mask;
            let [finding] = &findings_of(BloomFilter::parse(&bytes, Version::Oa).unwrap())[..]
            else {
                panic!("bit {bit}: one finding");
            };
            let (structure, found) = match intact.bits()[bit / 8] & mask {
                0 => ("filter.extra_bits", "1 bits more"),
                _ => ("filter.bits", "1 bits less"),
            };
            assert_eq!(finding.structure, structure);
            assert!(finding.found.starts_with(found), "{}", finding.found);
            assert_eq!(finding.offset, Some(at as u64));
            bytes[at] ^= mask;
        }
    }

    #[test]
    fn samples_are_dropped_in_cassandras_order() {
        // From the comment in Downsampling: for a base level of 4 and 8.
        assert_eq!(pattern(1), [0]);
        assert_eq!(pattern(4), [3, 1, 2, 0]);
        assert_eq!(pattern(8), [7, 3, 5, 1, 6, 2, 4, 0]);
        assert_eq!(kept_samples(128).len(), 128);
        assert_eq!(kept_samples(64), (0..64).map(|i| 2 * i).collect::<Vec<_>>());
        assert_eq!(kept_samples(1), [0]);
    }
}
