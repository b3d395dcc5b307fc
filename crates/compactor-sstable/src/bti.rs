//! Index files of the BTI format: `Partitions.db` and `Rows.db`, tries over byte-comparable keys.
//!
//! | Module | Content |
//! |---|---|
//! | [`byte_comparable`] | encodings of keys whose unsigned byte order is the order of the keys |
//! | [`node`] | the sixteen types of trie nodes |
//! | [`paged_output`] | a file under construction, with pages |
//! | [`trie_write`] | writing sorted keys as nodes packed into pages |
//! | [`trie_read`] | lookups and walks that are safe for hostile bytes |
//! | [`partitions`] | `Partitions.db`: from a partition key to a position |
//! | [`rows`] | `Rows.db`: from a clustering to a block of a wide partition |
//!
//! Data.db of versions `da` and `ea` has the layout of `oa`.
//!
//! Source: `org.apache.cassandra.io.tries`, `org.apache.cassandra.io.sstable.format.bti`.

pub mod byte_comparable;
pub mod node;
pub mod paged_output;
pub mod partitions;
pub mod rows;
pub mod trie_read;
pub mod trie_write;
