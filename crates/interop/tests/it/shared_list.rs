//! Expected result of each of the shared SSTables.

use std::fmt;

/// Expected result of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Cassandra and our readers read the same.
    Same,
    /// Cassandra 6 refuses a component that Cassandra 3 accepts; after a rewrite of the component with the same
    /// content, it reads the same as we do from the original.
    SameRewritten,
    /// Both refuse; our error contains this.
    Refused(&'static str),
    /// Cassandra reads it; ours refuses, and the error contains this.
    OnlyCassandra(&'static str),
}

impl Outcome {
    pub(crate) fn is_same(self) -> bool {
        matches!(self, Outcome::Same | Outcome::SameRewritten)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Same => f.write_str("equal"),
            Outcome::SameRewritten => f.write_str("equal once rewritten for Cassandra 6"),
            Outcome::Refused(text) => write!(f, "both refuse: {text}"),
            Outcome::OnlyCassandra(text) => write!(f, "only ours refuses: {text}"),
        }
    }
}

/// A file and its expected result.
pub(crate) struct Known {
    /// Data.db, relative to the shared directory.
    pub(crate) file: &'static str,
    /// `dump` compared with `sstabledump -l`.
    pub(crate) dump: Outcome,
    /// `merge` compared with Cassandra's compaction, alone and with Cassandra's output of it in a newer version.
    pub(crate) merge: Outcome,
    /// Structures that `verify` reports as damaged.
    pub(crate) damage: &'static [&'static str],
    /// Reason for each difference.
    pub(crate) remark: &'static str,
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let damage = match self.damage {
            [] => "sound".to_owned(),
            damage => damage.join(", "),
        };
        write!(
            f,
            "| {} | {} | {} | {damage} | {} |",
            self.file, self.dump, self.merge, self.remark
        )
    }
}

impl Known {
    /// A file that is sound, and read and merged as by Cassandra.
    const fn same(file: &'static str) -> Known {
        Known {
            file,
            dump: Outcome::Same,
            merge: Outcome::Same,
            damage: &[],
            remark: "",
        }
    }

    /// A file with the same result after a rewrite.
    const fn rewritten(file: &'static str, remark: &'static str) -> Known {
        Known {
            dump: Outcome::SameRewritten,
            merge: Outcome::SameRewritten,
            remark,
            ..Known::same(file)
        }
    }
}

/// Every file, by name.
pub(crate) fn files() -> Vec<Known> {
    let mut files: Vec<Known> = SAME.into_iter().map(Known::same).collect();
    files.extend(OTHERS);
    files.sort_by_key(|known| known.file);
    files
}

/// All pairs of SSTables of one table, which has a directory of its own.
pub(crate) fn pairs() -> Vec<(&'static str, &'static str)> {
    let directory = |file: &'static str| file.rsplit_once('/').map(|(directory, _)| directory);
    let files = files();
    let mut pairs = Vec::new();
    for (n, first) in files.iter().enumerate() {
        let others = files[n + 1..].iter().map(|known| known.file);
        let beside = others.filter(|other| directory(other) == directory(first.file));
        pairs.extend(beside.map(|second| (first.file, second)));
    }
    pairs
}

const SAME: [&str; 39] = [
    "3.x/uncompressed/collections/mc-1-big-Data.db",
    "3.x/uncompressed/compound_static_row/mc-1-big-Data.db",
    "3.x/uncompressed/counters/mc-1-big-Data.db",
    "3.x/uncompressed/filtering_and_forwarding/mc-1-big-Data.db",
    "3.x/uncompressed/large_subset_of_columns_sparse/mc-1-big-Data.db",
    "3.x/uncompressed/partition_key_only/mc-1-big-Data.db",
    "3.x/uncompressed/range_tombstones_partial/mc-1-big-Data.db",
    "3.x/uncompressed/read_empty_index/mc-1-big-Data.db",
    "3.x/uncompressed/read_two_rows_fast_forwarding/mc-1-big-Data.db",
    "3.x/uncompressed/simple/mc-1-big-Data.db",
    "3.x/uncompressed/slicing_interleaved_rows_and_rts/mc-1-big-Data.db",
    "3.x/uncompressed/subset_of_columns/mc-1-big-Data.db",
    "3.x/uncompressed/write_collection_incremental_update/mc-1-big-Data.db",
    "3.x/uncompressed/write_dead_row_marker/mc-1-big-Data.db",
    "3.x/uncompressed/write_different_types/mc-1-big-Data.db",
    "3.x/uncompressed/write_empty_clustering_values/mc-1-big-Data.db",
    "3.x/uncompressed/write_large_clustering_key/mc-1-big-Data.db",
    "3.x/uncompressed/write_missing_columns_large_set/mc-1-big-Data.db",
    "3.x/uncompressed/write_simple_range_tombstone/mc-1-big-Data.db",
    "3.x/uncompressed/write_ttled_column/mc-1-big-Data.db",
    "3.x/uncompressed/write_user_defined_type_table/mc-1-big-Data.db",
    "3.x/zstd/partition_key_with_values_of_different_types/mc-1-big-Data.db",
    "incompatible_serialized_type/mc-122-big-Data.db",
    "multi_schema_test/test/test_multi_schema-1c6ace40fad111e7b9cf000000000002/mc-1-big-Data.db",
    "multi_schema_test/test/test_multi_schema-1c6ace40fad111e7b9cf000000000002/md-1-big-Data.db",
    "multi_schema_test/test/test_multi_schema-1c6ace40fad111e7b9cf000000000002/me-1-big-Data.db",
    "partition_skipping/ks/test_skipping_partitions-1c6ace40fad111e7b9cf000000000002/mc-1-big-Data.db",
    "partition_skipping/ks/test_skipping_partitions-1c6ace40fad111e7b9cf000000000002/md-1-big-Data.db",
    "partition_skipping/ks/test_skipping_partitions-1c6ace40fad111e7b9cf000000000002/me-1-big-Data.db",
    "promoted_index_read/ks/promoted_index_read-1c6ace40fad111e7b9cf000000000002/mc-1-big-Data.db",
    "promoted_index_read/ks/promoted_index_read-1c6ace40fad111e7b9cf000000000002/me-1-big-Data.db",
    "sliced_mutation_reads/ks/sliced_mutation_reads_test-1c6ace40fad111e7b9cf000000000002/mc-1-big-Data.db",
    "sliced_mutation_reads/ks/sliced_mutation_reads_test-1c6ace40fad111e7b9cf000000000002/md-1-big-Data.db",
    "sliced_mutation_reads/ks/sliced_mutation_reads_test-1c6ace40fad111e7b9cf000000000002/me-1-big-Data.db",
    "summary_test/test/summary_test-1c6ace40fad111e7b9cf000000000002/mc-1-big-Data.db",
    "summary_test/test/summary_test-1c6ace40fad111e7b9cf000000000002/md-1-big-Data.db",
    "summary_test/test/summary_test-1c6ace40fad111e7b9cf000000000002/me-1-big-Data.db",
    "wrong_range_tombstone_order/ks/wrong_range_tombstone_order-1c6ace40fad111e7b9cf000000000002/mc-1-big-Data.db",
    "wrong_range_tombstone_order/ks/wrong_range_tombstone_order-1c6ace40fad111e7b9cf000000000002/me-1-big-Data.db",
];

const OTHERS: [Known; 17] = [
    Known::rewritten(
        "3.x/uncompressed/complex_column_zero_subcolumns/mc-1-big-Data.db",
        "Statistics.db lists its components out of order (an early ScyllaDB), which Cassandra 3 looks up and Cassandra 6 reads in sequence; cells are counted twice there (a note, since the sizes of partitions are right)",
    ),
    Known {
        dump: Outcome::Refused("corrupt chunk.crc at offset 65536"),
        merge: Outcome::OnlyCassandra("corrupt chunk.crc at offset 65536"),
        damage: &["Data.db chunk.crc", "Digest.crc32 digest"],
        remark: "Cassandra does not read CRC.db: its dump fails on the damaged bytes of a text, its compaction copies them",
        ..Known::same("3.x/uncompressed/integrity_check/invalid_checksums/me-1-big-Data.db")
    },
    Known {
        remark: "no TOC.txt, which Cassandra recreates",
        ..Known::same("3.x/uncompressed/write_counter_table/mc-1-big-Data.db")
    },
    Known::rewritten(
        "3.x/uncompressed/write_empty_counter/mc-1-big-Data.db",
        "the header has 64-bit minima (ScyllaDB), which Cassandra 3 truncates and 6 refuses",
    ),
    Known::rewritten(
        "3.x/uncompressed/write_empty_static_row/mc-1-big-Data.db",
        "Statistics.db lists its components out of order (an early ScyllaDB), which Cassandra 3 looks up and Cassandra 6 reads in sequence; cells are counted twice there (a note, since the sizes of partitions are right); no TOC.txt",
    ),
    Known {
        remark: "no TOC.txt, which Cassandra recreates",
        ..Known::same("3.x/uncompressed/write_many_deleted_partitions/mc-1-big-Data.db")
    },
    Known {
        remark: "no TOC.txt, which Cassandra recreates",
        ..Known::same("3.x/uncompressed/write_overlapped_start_range_tombstones/mc-1-big-Data.db")
    },
    Known {
        dump: Outcome::Refused("corrupt row.body at position 59"),
        merge: Outcome::Refused("corrupt row.body at position 59"),
        damage: &["Data.db row.body"],
        remark: "a shadowable deletion in ScyllaDB's own encoding (extended flag 80), after which Cassandra reads at a wrong position; Cassandra 6 already refuses Statistics.db",
        ..Known::same("3.x/uncompressed/write_shadowable_deletion/mc-1-big-Data.db")
    },
    Known::rewritten(
        "3.x/uncompressed/write_static_interleaved_atomic_and_collection_columns/mc-1-big-Data.db",
        "Statistics.db lists its components out of order (an early ScyllaDB), which Cassandra 3 looks up and Cassandra 6 reads in sequence, and its columns too; cells are counted twice there (a note, since the sizes of partitions are right); no TOC.txt",
    ),
    Known {
        dump: Outcome::OnlyCassandra("corrupt chunk.crc at offset 0"),
        merge: Outcome::OnlyCassandra("corrupt chunk.crc at offset 0"),
        damage: &["Data.db chunk.crc", "Digest.crc32 digest"],
        remark: "Cassandra does not read CRC.db when it dumps or compacts",
        ..Known::same("broken_close_tombstone/mc-122-big-Data.db")
    },
    Known {
        dump: Outcome::Refused("Data.db has 0 bytes"),
        merge: Outcome::Refused("Data.db has 0 bytes"),
        damage: &[
            "Data.db data",
            "Data.db data.length",
            "Data.db chunk",
            "Digest.crc32 digest",
        ],
        remark: "Data.db is empty",
        ..Known::same("compression-premature-eof/mc-1-big-Data.db")
    },
    Known {
        merge: Outcome::OnlyCassandra(
            "Index.db: corrupt component at offset 0: expected index.entry",
        ),
        damage: &["Index.db index.entry"],
        remark: "Index.db is one byte; Cassandra dumps and compacts without reading it",
        ..Known::same("empty_index/mc-36-big-Data.db")
    },
    Known::rewritten(
        "mixed_generation_type/me-3-big-Data.db",
        "the header has 64-bit minima (ScyllaDB), which Cassandra 3 truncates and 6 refuses, as it does the compression option crc_check_chance",
    ),
    Known::rewritten(
        "mixed_generation_type/me-3gsm_0lob_1zdg02we44my8dy25w-big-Data.db",
        "the header has 64-bit minima (ScyllaDB), which Cassandra 3 truncates and 6 refuses, as it does the compression option crc_check_chance",
    ),
    Known::rewritten(
        "mixed_generation_type/me-5-big-Data.db",
        "the header has 64-bit minima (ScyllaDB), which Cassandra 3 truncates and 6 refuses, as it does the compression option crc_check_chance",
    ),
    Known {
        damage: &[
            "Statistics.db stats.covered_clustering.start",
            "Statistics.db stats.covered_clustering.end",
        ],
        remark: "an mc file renamed md: in md the least and greatest clustering must be exact, and here they leave out a range tombstone",
        ..Known::same(
            "promoted_index_read/ks/promoted_index_read-1c6ace40fad111e7b9cf000000000002/md-1-big-Data.db",
        )
    },
    Known {
        damage: &[
            "Statistics.db stats.covered_clustering.start",
            "Statistics.db stats.covered_clustering.end",
        ],
        remark: "an mc file renamed md: in md the least and greatest clustering must be exact, and here they leave out a range tombstone",
        ..Known::same(
            "wrong_range_tombstone_order/ks/wrong_range_tombstone_order-1c6ace40fad111e7b9cf000000000002/md-1-big-Data.db",
        )
    },
];
