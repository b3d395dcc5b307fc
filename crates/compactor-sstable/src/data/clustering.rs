//! Clustering prefixes: positions of rows and bounds in their partition.
//!
//! Values are stored in blocks of up to 32, each after one vint header of two bits per value
//! (`00` present, `01` empty, `10` null), framed by the clustering type:
//!
//! ```text
//! clustering := block*                      all of the table's clustering columns, no kind, no count
//! bound      := u8 kind | u16 count | block*
//! prefix     := u8 kind | (clustering if kind is CLUSTERING, otherwise u16 count | block*)
//! ```
//!
//! Source: `ClusteringPrefix.Serializer`, `ClusteringPrefix.Kind`, `ClusteringComparator`.

use std::cmp::Ordering;

use crate::byte_reader::ByteReader;
use crate::byte_sink::ByteSink;
use crate::data::parse::{MAX_VALUE_LEN, Parse, Stop};
use crate::error::{Error, Result};
use crate::types::{ClusteringOrder, CqlType};
use crate::vint;

/// Greatest length of a row's clustering, far above what CQL can write: positions in a row with a body of the greatest
/// length fit 32 bits.
const MAX_CLUSTERING_LEN: usize = 1 << 30;

/// Kind of a clustering prefix, by Cassandra's ordinals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Ends before the prefix.
    ExclEndBound = 0,
    /// Starts with the prefix.
    InclStartBound = 1,
    /// Ends before the prefix, and another deletion starts with it.
    ExclEndInclStartBoundary = 2,
    /// The static row; never serialized.
    StaticClustering = 3,
    /// A row.
    Clustering = 4,
    /// Ends with the prefix, and another deletion starts after it.
    InclEndExclStartBoundary = 5,
    /// Ends with the prefix.
    InclEndBound = 6,
    /// Starts after the prefix.
    ExclStartBound = 7,
}

impl Kind {
    /// Returns the kind with this ordinal.
    #[inline]
    pub fn from_ordinal(ordinal: u8) -> Option<Kind> {
        Some(match ordinal {
            0 => Kind::ExclEndBound,
            1 => Kind::InclStartBound,
            2 => Kind::ExclEndInclStartBoundary,
            3 => Kind::StaticClustering,
            4 => Kind::Clustering,
            5 => Kind::InclEndExclStartBoundary,
            6 => Kind::InclEndBound,
            7 => Kind::ExclStartBound,
            _ => return None,
        })
    }

    /// Rank among kinds with the same values: bounds before, static, rows, bounds after.
    #[inline]
    fn rank(self) -> u8 {
        match self {
            Kind::ExclEndBound | Kind::InclStartBound | Kind::ExclEndInclStartBoundary => 0,
            Kind::StaticClustering => 1,
            Kind::Clustering => 2,
            Kind::InclEndExclStartBoundary | Kind::InclEndBound | Kind::ExclStartBound => 3,
        }
    }

    /// Order of this prefix relative to a longer one that begins with it (`comparedToClustering`).
    #[inline]
    pub fn compared_to_clustering(self) -> Ordering {
        match self.rank() {
            0 | 1 => Ordering::Less,
            2 => Ordering::Equal,
            _ => Ordering::Greater,
        }
    }

    /// Whether this is a bound or boundary, the kinds of range tombstone markers.
    #[inline]
    pub fn is_bound_or_boundary(self) -> bool {
        !matches!(self, Kind::Clustering | Kind::StaticClustering)
    }

    /// Whether it both closes a range and opens another.
    #[inline]
    pub fn is_boundary(self) -> bool {
        matches!(
            self,
            Kind::ExclEndInclStartBoundary | Kind::InclEndExclStartBoundary
        )
    }

    /// Whether it opens a range, as boundaries do.
    #[inline]
    pub fn is_open(self) -> bool {
        matches!(self, Kind::InclStartBound | Kind::ExclStartBound) || self.is_boundary()
    }

    /// Whether it closes a range, as boundaries do.
    #[inline]
    pub fn is_close(self) -> bool {
        matches!(self, Kind::ExclEndBound | Kind::InclEndBound) || self.is_boundary()
    }
}

/// Framing and order of the values of one clustering column.
#[derive(Clone, Debug)]
struct ClusteringColumn {
    /// Length of each non-empty value; `None` if a vint length precedes it.
    fixed_len: Option<u32>,
    order: ClusteringOrder,
}

/// Framing and order of the clustering columns of a table.
#[derive(Clone, Debug, Default)]
pub struct ClusteringComparator {
    columns: Vec<ClusteringColumn>,
}

/// Position of a value, relative to the start of the parsed slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueSpan {
    start: u32,
    len: u32,
}

impl ValueSpan {
    const NULL_LEN: u32 = u32::MAX;
    /// A null value.
    pub const NULL: ValueSpan = ValueSpan {
        start: 0,
        len: ValueSpan::NULL_LEN,
    };

    /// Returns the value's bytes in `base`, the parsed slice; `None` if null.
    #[inline(always)]
    pub fn of<'a>(&self, base: &'a [u8]) -> Option<&'a [u8]> {
        if self.len == ValueSpan::NULL_LEN {
            return None;
        }
        base.get(self.start as usize..self.start as usize + self.len as usize)
    }
}

/// A parsed prefix that borrows its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Prefix<'a> {
    /// Kind of the prefix.
    pub kind: Kind,
    /// Slice to which the spans refer.
    pub base: &'a [u8],
    /// One span per value; in a bound there may be fewer than the table's clustering columns.
    pub spans: &'a [ValueSpan],
}

impl<'a> Prefix<'a> {
    /// Value `index`; `None` if null.
    pub fn value(&self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).and_then(|span| span.of(self.base))
    }

    /// All values, `None` for null.
    pub fn values(&self) -> impl ExactSizeIterator<Item = Option<&'a [u8]>> + Clone + use<'a> {
        let base = self.base;
        self.spans.iter().map(move |span| span.of(base))
    }
}

/// Replaces `name` by a clustering in the form used in the promoted index: its kind, then `body`, the bytes that
/// follow the kind in Data.db.
#[inline]
pub(crate) fn set_name(name: &mut Vec<u8>, kind: Kind, body: &[u8]) {
    name.clear();
    name.push(kind as u8);
    name.extend_from_slice(body);
}

impl ClusteringComparator {
    /// Creates a comparator for clustering columns of these types, in order.
    ///
    /// # Errors
    /// Unsupported if a fixed-length type is longer than 256 MiB.
    pub fn new(types: &[CqlType]) -> Result<ClusteringComparator> {
        let column = |cql_type: &CqlType| match cql_type.fixed_len() {
            Some(len) if len > MAX_VALUE_LEN => Err(Error::unsupported(format!(
                "clustering values of {len} bytes"
            ))),
            fixed_len => Ok(ClusteringColumn {
                fixed_len: fixed_len.map(|len| len as u32),
                order: ClusteringOrder::of(cql_type),
            }),
        };
        let columns = types.iter().map(column).collect::<Result<_>>()?;
        Ok(ClusteringComparator { columns })
    }

    /// Number of clustering columns.
    #[inline]
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether the table has no clustering columns.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Whether values of both have the same framing, so that bytes may be copied.
    pub fn same_framing(&self, other: &ClusteringComparator) -> bool {
        self.len() == other.len()
            && self
                .columns
                .iter()
                .zip(&other.columns)
                .all(|(a, b)| a.fixed_len == b.fixed_len)
    }

    /// Whether the results of [`ClusteringComparator::memcomparable_prefix`] of both can be compared.
    pub fn same_memcomparable_prefixes(&self, other: &ClusteringComparator) -> bool {
        match (self.columns.first(), other.columns.first()) {
            (Some(a), Some(b)) => a.order.same_prefixes(&b.order),
            (a, b) => a.is_none() && b.is_none(),
        }
    }

    /// Returns a number that sorts as the prefix does: if the numbers of two prefixes differ, the prefixes
    /// are in the order of the numbers. If they are equal or one is missing,
    /// [`ClusteringComparator::compare`] decides.
    #[inline]
    pub fn memcomparable_prefix(&self, prefix: Prefix<'_>) -> Option<u64> {
        let column = self.columns.first()?;
        column.order.prefix(prefix.value(0)?)
    }

    /// Parses `count` values at `*pos` of `bytes` into `spans` (cleared first).
    ///
    /// # Errors
    /// [`Stop::Incomplete`] if the bytes end first.
    #[inline]
    pub fn parse_values(
        &self,
        bytes: &[u8],
        pos: &mut usize,
        count: usize,
        spans: &mut Vec<ValueSpan>,
    ) -> Parse<()> {
        spans.clear();
        self.append_values(bytes, pos, count, spans)
    }

    /// As [`ClusteringComparator::parse_values`], but appends to `spans`.
    #[inline(always)]
    pub(super) fn append_values(
        &self,
        bytes: &[u8],
        pos: &mut usize,
        count: usize,
        spans: &mut Vec<ValueSpan>,
    ) -> Parse<()> {
        let mut header = 0u64;
        for (index, column) in self.columns.iter().enumerate().take(count) {
            if index % 32 == 0 {
                header = vint::read_unsigned(bytes, pos).ok_or(Stop::Incomplete)?;
            }
            match (header >> (2 * (index % 32))) & 3 {
                0 => {
                    let len = match column.fixed_len {
                        Some(len) => len as usize,
                        None => {
                            let at = *pos;
                            let raw = vint::read_unsigned(bytes, pos).ok_or(Stop::Incomplete)?;
                            if raw > MAX_VALUE_LEN as u64 {
                                return Err(too_long(at, raw));
                            }
                            raw as usize
                        }
                    };
                    let end = *pos + len;
                    if end > bytes.len() {
                        return Err(Stop::Incomplete);
                    }
                    if end > MAX_CLUSTERING_LEN {
                        return Err(too_long(*pos, end as u64));
                    }
                    spans.push(ValueSpan {
                        start: *pos as u32,
                        len: len as u32,
                    });
                    *pos = end;
                }
                1 => spans.push(ValueSpan { start: 0, len: 0 }),
                // Cassandra checks the null bit first, so `11` is null as well.
                _ => spans.push(ValueSpan::NULL),
            }
        }
        Ok(())
    }

    /// Parses a row's clustering at `*pos`.
    ///
    /// # Errors
    /// [`Stop::Incomplete`] if the bytes end first.
    #[inline]
    pub fn parse_row(
        &self,
        bytes: &[u8],
        pos: &mut usize,
        spans: &mut Vec<ValueSpan>,
    ) -> Parse<()> {
        self.parse_values(bytes, pos, self.columns.len(), spans)
    }

    /// Parses `u8 kind | u16 count | values` of a range tombstone marker at `*pos`.
    ///
    /// # Errors
    /// [`Stop::Incomplete`] if the bytes end first; corruption for a kind that is not a bound, or more values
    /// than clustering columns.
    pub fn parse_bound(
        &self,
        bytes: &[u8],
        pos: &mut usize,
        spans: &mut Vec<ValueSpan>,
    ) -> Parse<Kind> {
        let at = *pos;
        let ordinal = *bytes.get(at).ok_or(Stop::Incomplete)?;
        let kind = match Kind::from_ordinal(ordinal) {
            Some(kind) if kind.is_bound_or_boundary() => kind,
            _ => {
                return Err(Stop::Corrupt(Error::corrupt(
                    "marker.bound_kind",
                    at as u64,
                    "a bound or boundary: 0, 1, 2, 5, 6 or 7",
                    ordinal,
                )));
            }
        };
        let count = bytes.get(at + 1..at + 3).ok_or(Stop::Incomplete)?;
        let count = usize::from(u16::from_be_bytes([count[0], count[1]]));
        if count > self.columns.len() {
            return Err(Stop::Corrupt(Error::corrupt(
                "marker.bound_count",
                at as u64 + 1,
                format!("at most {} clustering values", self.columns.len()),
                count,
            )));
        }
        *pos = at + 3;
        self.parse_values(bytes, pos, count, spans)?;
        Ok(kind)
    }

    /// Parses the clustering or bound at the start of `name`, in the form used in the promoted index. The
    /// positions of its values are stored in `spans`.
    ///
    /// # Errors
    /// Corruption if bytes are missing or the kind is unknown.
    pub fn parse_name<'a>(
        &self,
        name: &'a [u8],
        spans: &'a mut Vec<ValueSpan>,
    ) -> Result<Prefix<'a>> {
        let kind = self.read_prefix(&mut ByteReader::new(name), spans)?;
        Ok(Prefix {
            kind,
            base: name,
            spans,
        })
    }

    /// Reads the form used in the promoted index: a kind, then a clustering or a bound.
    ///
    /// # Errors
    /// Corruption if bytes are missing or the kind is unknown.
    pub fn read_prefix(
        &self,
        reader: &mut ByteReader<'_>,
        spans: &mut Vec<ValueSpan>,
    ) -> Result<Kind> {
        const NAME: &str = "index_info.clustering_prefix";
        let start = reader.offset();
        let rest = reader.clone().bytes(reader.remaining(), NAME)?;
        let mut pos = 0;
        let parsed = match rest.first() {
            Some(4) => {
                pos = 1;
                self.parse_row(rest, &mut pos, spans)
                    .map(|()| Kind::Clustering)
            }
            _ => self.parse_bound(rest, &mut pos, spans),
        };
        let kind = match parsed {
            Ok(kind) => kind,
            Err(Stop::Corrupt(error)) => return Err(error.at_base(start)),
            Err(Stop::Incomplete) => {
                return Err(Error::corrupt(
                    NAME,
                    start,
                    "a whole clustering prefix",
                    format!("{} bytes left", rest.len()),
                ));
            }
        };
        reader.bytes(pos, NAME)?;
        Ok(kind)
    }

    /// Appends values with their block headers.
    ///
    /// # Panics
    /// If there are more values than columns: callers build prefixes of this table.
    pub fn write_values<'v>(
        &self,
        out: &mut Vec<u8>,
        values: impl ExactSizeIterator<Item = Option<&'v [u8]>> + Clone,
    ) {
        assert!(
            values.len() <= self.columns.len(),
            "more values than clustering columns"
        );
        let mut rest = values;
        let mut columns = self.columns.iter();
        while rest.len() > 0 {
            let mut header = 0u64;
            for (index, value) in rest.clone().take(32).enumerate() {
                let state = match value {
                    None => 2,
                    Some([]) => 1,
                    Some(_) => 0,
                };
                header |= state << (2 * index);
            }
            out.put_uvint(header);
            for (value, column) in rest.by_ref().take(32).zip(columns.by_ref().take(32)) {
                if let Some(bytes) = value.filter(|bytes| !bytes.is_empty()) {
                    if column.fixed_len.is_none() {
                        out.put_uvint(bytes.len() as u64);
                    }
                    out.put_slice(bytes);
                }
            }
        }
    }

    /// Appends `u8 kind | u16 count | values`, or `u8 kind | values` for a row, as stored in the promoted
    /// index.
    pub fn write_prefix<'v>(
        &self,
        out: &mut Vec<u8>,
        kind: Kind,
        values: impl ExactSizeIterator<Item = Option<&'v [u8]>> + Clone,
    ) {
        out.put_u8(kind as u8);
        if kind != Kind::Clustering {
            out.put_u16(values.len() as u16);
        }
        self.write_values(out, values);
    }

    /// Compares value `index` of two prefixes: null sorts first, then the column's order applies.
    #[inline]
    pub fn compare_value(&self, index: usize, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
        match (a, b) {
            (Some(a), Some(b)) => match self.columns.get(index) {
                Some(column) => column.order.compare(a, b),
                None => a.cmp(b),
            },
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
        }
    }

    /// Compares two prefixes by their positions in a partition (`ClusteringComparator.compare`).
    #[inline]
    pub fn compare(&self, a: Prefix<'_>, b: Prefix<'_>) -> Ordering {
        for (index, (left, right)) in a.spans.iter().zip(b.spans).enumerate() {
            let order = self.compare_value(index, left.of(a.base), right.of(b.base));
            if order != Ordering::Equal {
                return order;
            }
        }
        match a.spans.len().cmp(&b.spans.len()) {
            Ordering::Equal => a.kind.rank().cmp(&b.kind.rank()),
            Ordering::Less => a.kind.compared_to_clustering(),
            Ordering::Greater => b.kind.compared_to_clustering().reverse(),
        }
    }
}

#[cold]
fn too_long(at: usize, found: u64) -> Stop {
    Stop::Corrupt(Error::corrupt(
        "clustering.value_length",
        at as u64,
        format!("at most {MAX_VALUE_LEN} bytes"),
        found,
    ))
}
