//! The index files of the BTI format: `Partitions.db` and `Rows.db`, tries over byte-comparable keys.
//!
//! | Module | What it knows |
//! |---|---|
//! | [`byte_comparable`] | keys as bytes whose unsigned order is the order of the keys |
//! | [`node`] | the sixteen kinds of trie nodes |
//! | [`paged_output`] | a file under construction, with pages |
//! | [`trie_write`] | sorted keys into nodes, packed into pages |
//! | [`trie_read`] | lookups and walks that hostile bytes cannot lead astray |
//! | [`partitions`] | `Partitions.db`: from a partition key to a position |
//! | [`rows`] | `Rows.db`: from a clustering to a block of a wide partition |
//!
//! Data.db of versions `da` and `ea` has the form of `oa`.
//!
//! Source: `org.apache.cassandra.io.tries`, `org.apache.cassandra.io.sstable.format.bti`.

pub mod byte_comparable;
pub mod node;
pub mod paged_output;
pub mod partitions;
pub mod rows;
pub mod trie_read;
pub mod trie_write;
