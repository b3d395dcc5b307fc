//! Kinds of daemons: a release, a storage compatibility mode and a format.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result};

/// The table of wide partitions.
pub(crate) const WIDE: &str = "wide";

/// A release and its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Name on the command line.
    pub name: &'static str,
    /// Version of `cassandra-all`.
    pub release: &'static str,
    /// SSTable version that it writes.
    pub version: &'static str,
    settings: &'static [&'static str],
}

const NONE: &str = "storage_compatibility_mode: NONE";
const BTI: &str = "sstable: {selected_format: bti}";
const MASKING: &str = "dynamic_data_masking_enabled: true";
/// Without this, a flush may use another compressor than the table's.
const FLUSH: &str = "flush_compression: table";

/// Selects the pipeline whose compaction equals ours byte for byte.
const ITERATORS: &str = "cursor_compaction_enabled: false";
/// Name of the daemon that compacts BIG with the cursor pipeline, as by default.
const CURSORS: &str = "6.0-alpha2-cursors";

impl Kind {
    /// Every kind, oldest release first.
    pub const ALL: [Self; 10] = [
        kind("3.11.19", "3.11.19", "me", &[]),
        kind("4.1.10", "4.1.10", "nb", &[FLUSH]),
        kind("5.0.5", "5.0.5", "nb", &[FLUSH, MASKING]),
        kind("5.0.5-oa", "5.0.5", "oa", &[FLUSH, MASKING, NONE]),
        kind("5.0.5-da", "5.0.5", "da", &[FLUSH, MASKING, NONE, BTI]),
        kind("5.0.9", "5.0.9", "nb", &[FLUSH, MASKING]),
        kind("5.0.9-da", "5.0.9", "da", &[FLUSH, MASKING, NONE, BTI]),
        kind(
            "6.0-alpha2",
            "6.0-alpha2",
            "pa",
            &[FLUSH, MASKING, NONE, ITERATORS],
        ),
        kind(CURSORS, "6.0-alpha2", "pa", &[FLUSH, MASKING, NONE]),
        kind(
            "6.0-alpha2-ea",
            "6.0-alpha2",
            "ea",
            &[FLUSH, MASKING, NONE, BTI],
        ),
    ];

    /// The first number of the release.
    #[must_use]
    pub fn major(&self) -> u32 {
        let first = self.release.split('.').next().unwrap_or_default();
        first.parse().unwrap_or_default()
    }

    /// Lines of cassandra.yaml besides those of every daemon.
    pub(crate) fn settings(&self) -> &'static [&'static str] {
        self.settings
    }

    /// Version of logback in the release's distribution: newer slf4j does not see the bindings of older versions.
    pub(crate) fn logback(&self) -> &'static str {
        match self.release {
            "3.11.19" | "4.1.10" | "5.0.5" => "1.2.12",
            _ => "1.5.18",
        }
    }

    /// Whether the node compacts with cursors, which resolve ties differently and write some fields differently.
    pub(crate) fn has_cursors(&self) -> bool {
        self.name == CURSORS
    }

    /// Whether the node opens SSTables of a version that we write.
    pub(crate) fn opens_ours(&self) -> bool {
        self.major() > 3
    }

    /// Whether the node supports content that ends where a chunk does, as written by flushes of equal timestamps.
    ///
    /// The extended verifier of 4.1 seeks to the end of the content, in a mapping that lacks the empty chunk there
    /// (MmappedRegions.updateState): it refuses all such SSTables, its own too. Of several values with the same
    /// timestamp, cursors of 6.0-alpha2 keep another one than reads show.
    pub(crate) fn supports_exact_chunks(&self) -> bool {
        self.major() > 4 && !self.has_cursors()
    }

    /// Whether the node's own scrub keeps every row of a table.
    ///
    /// That of 5.0.5 and 5.0.9 loses rows with TTLs and range tombstones, also of SSTables that the node alone has
    /// written, and leaves a digest that its own verifier refuses: a ClassCastException and a NullPointerException in
    /// SortedTableScrubber. That of 6.0-alpha2 does so to a wide partition with range tombstones.
    pub(crate) fn scrubs_soundly(&self, table: &str) -> bool {
        match self.major() {
            5 => false,
            6 => table != WIDE,
            _ => true,
        }
    }
}

const fn kind(
    name: &'static str,
    release: &'static str,
    version: &'static str,
    settings: &'static [&'static str],
) -> Kind {
    Kind {
        name,
        release,
        version,
        settings,
    }
}

impl FromStr for Kind {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|kind| kind.name == name);
        found.with_context(|| {
            let names = Self::ALL.map(|kind| kind.name);
            format!(
                "there is no daemon {name}; the daemons are {}",
                names.join(", ")
            )
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
