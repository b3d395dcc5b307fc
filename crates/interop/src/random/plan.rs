//! A test case as data: the plan of a seed, and what is sent to the server.

use std::fmt;

use anyhow::{Context, Result};
use compactor::TombstoneOption;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cassandra::Mode;

/// Bytes that JSON carries as hex digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hex(pub Vec<u8>);

impl fmt::Debug for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", digits(&self.0))
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&digits(&self.0))
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let pairs = text.as_bytes().chunks(2);
        let bytes: Option<Vec<u8>> = pairs
            .map(|pair| {
                let pair = std::str::from_utf8(pair).ok()?;
                u8::from_str_radix(pair, 16).ok()
            })
            .collect();
        bytes
            .map(Hex)
            .ok_or_else(|| D::Error::custom("expected hex digits"))
    }
}

pub(super) fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One case: a table, the SSTables to merge, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The seed that it comes from.
    pub seed: u64,
    /// SSTable version of both outputs, hence the server.
    pub output: String,
    /// The merge's clock.
    pub now_s: i64,
    /// The merge's gc_before; `None` purges nothing.
    pub gc_before_s: Option<i64>,
    /// The table's schema at the time of the merge.
    pub schema: Schema,
    /// When the inputs were repaired, in milliseconds, or 0.
    pub repaired_at: i64,
    /// Whether our merge gets the schema.cql.
    #[serde(alias = "told_schema")]
    pub with_schema: bool,
    /// Oldest first.
    pub inputs: Vec<Input>,
    /// Number of the last inputs that are overlapping SSTables, which are not merged.
    pub others: usize,
    /// Data that these remove from the merge: the table's `provide_overlapping_tombstones`.
    #[serde(default = "none")]
    pub provided: String,
    /// Whether rows without live liveness have no data: the table represents a view whose key has a column outside the
    /// base table's key.
    #[serde(default)]
    pub strict_liveness: bool,
}

fn none() -> String {
    TombstoneOption::None.name().to_owned()
}

impl Plan {
    /// The mode of the server that writes the output's version.
    pub fn mode(&self) -> Result<Mode> {
        self.output.parse()
    }

    /// Value of `provide_overlapping_tombstones` for the merge.
    ///
    /// # Errors
    /// An option that Cassandra does not know.
    pub fn provided(&self) -> Result<TombstoneOption> {
        TombstoneOption::from_name(&self.provided)
            .with_context(|| format!("no provide_overlapping_tombstones {:?}", self.provided))
    }

    /// Makes Cassandra compress its output as ours will be: like the newest SSTable that is merged.
    pub fn compress_as_newest(&mut self) {
        if let Some(newest) = self.inputs.iter().rev().nth(self.others) {
            self.schema.compression = newest.schema.compression.clone();
        }
    }

    /// Whether it is a table of counters.
    #[must_use]
    pub fn has_counters(&self) -> bool {
        self.schema.flags.iter().any(|flag| flag == "COUNTER")
    }

    /// Whether the order of merges decides the result, in Cassandra too: there are counters and deletions, or row
    /// deletions that newer liveness lifts.
    #[must_use]
    pub fn depends_on_order(&self) -> bool {
        let partitions = self.inputs.iter().flat_map(|input| &input.partitions);
        let mut mutations = partitions.flat_map(|partition| &partition.mutations);
        let has_counters = self.has_counters();
        mutations.any(|mutation| match mutation {
            Mutation::Partition { .. } | Mutation::Range { .. } => has_counters,
            Mutation::Row {
                deletion,
                shadowable,
                ..
            } => deletion.is_some() && (has_counters || *shadowable),
        })
    }

    /// Number of mutations in all inputs.
    #[must_use]
    pub fn mutations(&self) -> usize {
        let partitions = self.inputs.iter().flat_map(|input| &input.partitions);
        partitions.map(|partition| partition.mutations.len()).sum()
    }
}

/// A table in the terms of Cassandra's `TableMetadata`; types by class name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// Types of the partition key.
    pub partition: Vec<String>,
    /// Types of the clustering columns, `ReversedType` where descending.
    pub clustering: Vec<String>,
    /// Static columns.
    #[serde(rename = "static")]
    pub statics: Vec<Column>,
    /// Regular columns.
    pub regular: Vec<Column>,
    /// Columns that the table no longer has.
    pub dropped: Vec<Dropped>,
    /// Flags: `COMPOUND`, `DENSE`, `COUNTER`.
    pub flags: Vec<String>,
    /// The table option of this name.
    pub bloom_filter_fp_chance: f64,
    /// Options of the compression, as in CQL.
    pub compression: Compression,
}

/// Options of a compressor, as in CQL.
pub type Compression = std::collections::BTreeMap<String, String>;

/// A static or regular column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Class name of its type.
    #[serde(rename = "type")]
    pub class: String,
}

/// A column that was dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dropped {
    /// Name.
    pub name: String,
    /// Class name of the type it had.
    #[serde(rename = "type")]
    pub class: String,
    /// Whether it was static.
    pub is_static: bool,
    /// Microseconds.
    pub dropped_at: i64,
}

/// One SSTable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// Version and format, such as `nb-big`.
    pub version: String,
    /// The table's schema when this was written.
    pub schema: Schema,
    /// Opened early before it was finished, as a node opens the outputs of its compactions: `Data.db` ends in an empty
    /// chunk.
    #[serde(default)]
    pub opened_early: bool,
    /// With markers that change nothing: boundaries whose two deletions are equal, and ranges under the partition's
    /// deletion.
    #[serde(default)]
    pub idle_markers: bool,
    /// Its content.
    pub partitions: Vec<Partition>,
}

/// The mutations of one partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Partition {
    /// The serialized key.
    pub key: Hex,
    /// In any order: they are merged as in a memtable.
    pub mutations: Vec<Mutation>,
}

/// A deletion's timestamp and local deletion time.
pub type Deletion = (i64, i64);

/// Column, path, timestamp, TTL (0 for none), expiry or local deletion time, value.
pub type Cell = (String, Option<Hex>, i64, i32, Option<i64>, Hex);

/// One change to a partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Mutation {
    /// A partition deletion.
    Partition {
        /// When.
        deletion: Deletion,
    },
    /// A range tombstone.
    Range {
        /// Start of the range.
        start: Bound,
        /// End of the range.
        end: Bound,
        /// When.
        deletion: Deletion,
    },
    /// Part of a row.
    Row {
        /// `None` for the static row; a value may be absent in compact tables.
        clustering: Option<Vec<Option<Hex>>>,
        /// Timestamp, TTL (0 for none), expiry.
        liveness: Option<(i64, i32, i64)>,
        /// Row deletion.
        deletion: Option<Deletion>,
        /// Whether newer liveness lifts the deletion.
        shadowable: bool,
        /// Deletions of whole multi-cell columns.
        complex: Vec<(String, i64, i64)>,
        /// Cells, tombstones too.
        cells: Vec<Cell>,
    },
}

impl Mutation {
    /// Whether the row has no content.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(
            self,
            Mutation::Row { liveness: None, deletion: None, complex, cells, .. }
                if complex.is_empty() && cells.is_empty()
        )
    }
}

/// One end of a range: a prefix of the clustering, open when empty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// The prefix.
    pub values: Vec<Hex>,
    /// Whether rows of this prefix are inside.
    pub inclusive: bool,
}
