//! Minimum and maximum clustering of an SSTable, by which reads of slices skip it.
//!
//! ```text
//! before oa:  i32 n | n * bytes16 | i32 n | n * bytes16          values of both, to be taken as
//!                                                                inclusive bounds
//! oa and on:  uvint n | n * bytesV type | start bound | end bound
//! bound       u8 kind | u16 count | values as in Data.db
//! ```
//!
//! If the slice is too narrow, reads skip the SSTable and do not find rows; if it is too wide, reads only
//! take longer.
//!
//! Source: `StatsMetadata.StatsMetadataSerializer`, `Slice.Serializer`, `MetadataCollector`.

use std::cmp::Ordering;

use crate::byte_reader::ByteReader;
use crate::byte_sink::ByteSink;
use crate::data::clustering::{ClusteringComparator, Kind, Prefix, ValueSpan};
use crate::error::{Error, Result};
use crate::statistics::header_type::HeaderType;
use crate::types::CqlType;
use crate::version::Version;

/// One end of the covered slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusteringBound {
    /// Start or end, inclusive or exclusive.
    pub kind: Kind,
    /// Values, `None` for null; there may be fewer than clustering columns.
    pub values: Vec<Option<Vec<u8>>>,
}

/// The slice of clusterings that an SSTable covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoveredClustering {
    /// Clustering types with which this slice was written; empty before `oa`.
    pub types: Vec<HeaderType>,
    /// Start of the slice.
    pub start: ClusteringBound,
    /// End of the slice.
    pub end: ClusteringBound,
}

impl ClusteringBound {
    /// Creates a bound without values.
    pub fn unbounded(kind: Kind) -> ClusteringBound {
        ClusteringBound {
            kind,
            values: Vec::new(),
        }
    }

    fn iter(&self) -> impl ExactSizeIterator<Item = Option<&[u8]>> + Clone {
        self.values.iter().map(Option::as_deref)
    }
}

impl CoveredClustering {
    /// Slice of all clusterings (`Slice.ALL`).
    pub fn all() -> CoveredClustering {
        CoveredClustering {
            types: Vec::new(),
            start: ClusteringBound::unbounded(Kind::InclStartBound),
            end: ClusteringBound::unbounded(Kind::InclEndBound),
        }
    }

    pub(super) fn parse(
        reader: &mut ByteReader<'_>,
        version: Version,
    ) -> Result<CoveredClustering> {
        if version.has_improved_min_max() {
            return parse_slice(reader);
        }
        let min = parse_values(reader)?;
        let max = parse_values(reader)?;
        let mut covered = CoveredClustering::all();
        // Older versions have lists that may be wrong (CASSANDRA-14861).
        if version.has_accurate_min_max() {
            covered.start.values = min;
            covered.end.values = max;
        }
        Ok(covered)
    }

    /// Appends the slice and returns by how many bytes Cassandra's computed length is greater: it includes
    /// the values after a null, which the old form cannot represent and omits.
    pub(super) fn write(&self, out: &mut Vec<u8>, version: Version) -> Result<usize> {
        if version.has_improved_min_max() {
            write_slice(self, out)?;
            return Ok(0);
        }
        Ok(write_values(&self.start, out)? + write_values(&self.end, out)?)
    }
}

fn parse_values(reader: &mut ByteReader<'_>) -> Result<Vec<Option<Vec<u8>>>> {
    let count = reader.i32_count(2, "stats.min_max_clustering.count")?;
    let value = |_| {
        let value = reader.bytes16("stats.min_max_clustering.value")?;
        Ok(Some(value.to_vec()))
    };
    (0..count).map(value).collect()
}

fn write_values(bound: &ClusteringBound, out: &mut Vec<u8>) -> Result<usize> {
    let known = bound
        .values
        .iter()
        .take_while(|value| value.is_some())
        .count();
    out.put_i32(known as i32);
    let mut left_out = 0;
    for (index, value) in bound.iter().enumerate() {
        let value = value.unwrap_or_default();
        if index >= known {
            left_out += 2 + value.len();
            continue;
        }
        if value.len() > usize::from(u16::MAX) {
            return Err(Error::unsupported(format!(
                "a clustering value of {} bytes in the minima and maxima of this version; at most \
                 65,535",
                value.len()
            )));
        }
        out.put_bytes16(value);
    }
    Ok(left_out)
}

fn comparator_of(types: &[HeaderType]) -> Result<ClusteringComparator> {
    let types: Vec<CqlType> = types.iter().map(|t| t.cql_type.clone()).collect();
    ClusteringComparator::new(&types)
}

fn parse_slice(reader: &mut ByteReader<'_>) -> Result<CoveredClustering> {
    let names = [
        "stats.clustering_types.count",
        "stats.clustering_types.type",
    ];
    let types = HeaderType::parse_all(reader, names)?;
    let comparator = comparator_of(&types)?;
    let mut spans = Vec::new();
    let mut bound = |name: &'static str, is_wanted: fn(Kind) -> bool| {
        let at = reader.offset();
        let start = reader.clone();
        let kind = comparator.read_prefix(reader, &mut spans)?;
        if !is_wanted(kind) || kind.is_boundary() {
            return Err(Error::corrupt(
                name,
                at,
                "a bound of that side",
                format!("{kind:?}"),
            ));
        }
        // Spans are relative to the first byte of the prefix.
        let base = start.clone().bytes(start.remaining(), name)?;
        let values = spans
            .iter()
            .map(|span| span.of(base).map(<[u8]>::to_vec))
            .collect();
        Ok(ClusteringBound { kind, values })
    };
    let start = bound("stats.covered_clustering.start", Kind::is_open)?;
    let end = bound("stats.covered_clustering.end", Kind::is_close)?;
    Ok(CoveredClustering { types, start, end })
}

fn write_slice(covered: &CoveredClustering, out: &mut Vec<u8>) -> Result<()> {
    out.put_uvint(covered.types.len() as u64);
    for cql_type in &covered.types {
        out.put_bytes_v(cql_type.text.as_bytes());
    }
    let comparator = comparator_of(&covered.types)?;
    for bound in [&covered.start, &covered.end] {
        if bound.values.len() > covered.types.len() {
            return Err(Error::unsupported(format!(
                "{} clustering values for {} types",
                bound.values.len(),
                covered.types.len()
            )));
        }
        comparator.write_prefix(out, bound.kind, bound.iter());
    }
    Ok(())
}

/// Tracker of the minimum and maximum clustering.
///
/// It must be updated with the first and the last unfiltered of each partition, or with all of them: the
/// result is the same, since they ascend and every opened range tombstone is closed.
#[derive(Clone, Debug, Default)]
pub struct CoveredClusteringTracker {
    min: Option<OwnedPrefix>,
    max: Option<OwnedPrefix>,
}

/// A prefix with its own buffer, which is reused when it is replaced.
#[derive(Clone, Debug)]
pub struct OwnedPrefix {
    kind: Kind,
    bytes: Vec<u8>,
    spans: Vec<ValueSpan>,
}

impl OwnedPrefix {
    /// Creates a prefix from a bound; `None` if it has more values than there are clustering columns.
    pub fn of_bound(
        comparator: &ClusteringComparator,
        bound: &ClusteringBound,
    ) -> Option<OwnedPrefix> {
        let count = bound.values.len();
        if count > comparator.len() {
            return None;
        }
        let (mut bytes, mut spans, mut pos) = (Vec::new(), Vec::new(), 0);
        comparator.write_values(&mut bytes, bound.iter());
        comparator
            .parse_values(&bytes, &mut pos, count, &mut spans)
            .ok()?;
        Some(OwnedPrefix {
            kind: bound.kind,
            bytes,
            spans,
        })
    }

    fn set(&mut self, comparator: &ClusteringComparator, prefix: Prefix<'_>) {
        self.kind = prefix.kind;
        self.bytes.clear();
        comparator.write_values(&mut self.bytes, prefix.values());
        let mut pos = 0;
        let parsed =
            comparator.parse_values(&self.bytes, &mut pos, prefix.spans.len(), &mut self.spans);
        debug_assert!(parsed.is_ok(), "values that were just written");
    }

    /// View of the prefix.
    pub fn prefix(&self) -> Prefix<'_> {
        Prefix {
            kind: self.kind,
            base: &self.bytes,
            spans: &self.spans,
        }
    }

    fn bound(&self, kind: Kind) -> ClusteringBound {
        let values = self.prefix().values();
        let values = values.map(|value| value.map(<[u8]>::to_vec)).collect();
        ClusteringBound { kind, values }
    }
}

fn replace(slot: &mut Option<OwnedPrefix>, comparator: &ClusteringComparator, prefix: Prefix<'_>) {
    let owned = slot.get_or_insert_with(|| OwnedPrefix {
        kind: prefix.kind,
        bytes: Vec::new(),
        spans: Vec::new(),
    });
    owned.set(comparator, prefix);
}

impl CoveredClusteringTracker {
    /// Updates the extremes with those of another tracker, which tracked later partitions.
    pub fn append(&mut self, comparator: &ClusteringComparator, other: &CoveredClusteringTracker) {
        for owned in [&other.min, &other.max].into_iter().flatten() {
            self.update(comparator, owned.prefix());
        }
    }

    /// Creates a tracker without clusterings.
    pub fn new() -> CoveredClusteringTracker {
        CoveredClusteringTracker::default()
    }

    /// Updates the extremes with the clustering of a row or the bound of a marker
    /// (`MetadataCollector.updateClusteringValues`, `.updateClusteringValuesByBoundOrBoundary`).
    pub fn update(&mut self, comparator: &ClusteringComparator, prefix: Prefix<'_>) {
        let kind = prefix.kind;
        // A boundary is between an opening bound that is smaller and a closing bound that is greater.
        if kind.is_boundary() || kind == Kind::StaticClustering {
            return;
        }
        let is_row = kind == Kind::Clustering;
        let greater = match &self.max {
            Some(max) => comparator.compare(prefix, max.prefix()) == Ordering::Greater,
            None => true,
        };
        if greater {
            if is_row || kind.is_close() {
                replace(&mut self.max, comparator, prefix);
            }
            if self.min.is_none() && (is_row || kind.is_open()) {
                replace(&mut self.min, comparator, prefix);
            }
            return;
        }
        let less = match &self.min {
            Some(min) => comparator.compare(prefix, min.prefix()) == Ordering::Less,
            None => true,
        };
        if less && (is_row || kind.is_open()) {
            replace(&mut self.min, comparator, prefix);
        }
    }

    /// Returns the slice from the minimum to the maximum. Without any clustering it is Cassandra's empty
    /// slice, from after everything to before everything.
    pub fn finish(&self, types: Vec<HeaderType>) -> CoveredClustering {
        let start = match &self.min {
            None => ClusteringBound::unbounded(Kind::ExclStartBound),
            Some(min) if min.kind == Kind::Clustering => min.bound(Kind::InclStartBound),
            Some(min) => min.bound(min.kind),
        };
        let end = match &self.max {
            None => ClusteringBound::unbounded(Kind::ExclEndBound),
            Some(max) if max.kind == Kind::Clustering => max.bound(Kind::InclEndBound),
            Some(max) => max.bound(max.kind),
        };
        CoveredClustering { types, start, end }
    }
}

#[cfg(test)]
mod tests;
