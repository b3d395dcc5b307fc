//! Index files of the BIG format: Index.db with its promoted (row) index, and Summary.db.

pub mod index;
pub mod index_info;
pub mod summary;

pub use index::{IndexEntry, IndexReader, write_entry};
pub use index_info::{IndexInfo, PromotedIndex, PromotedIndexBuilder};
pub use summary::{Summary, SummaryBuilder};
