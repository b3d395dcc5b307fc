//! An input SSTable: its components and metadata, positions found by its indexes, and cursors over all of it or a
//! range.

pub(crate) mod bti_split_index;
pub(crate) mod by_kind;
pub(crate) mod component_file;
pub(crate) mod component_list;
pub(crate) mod existing;
pub(crate) mod header_union;
pub(crate) mod index_heads;
pub(crate) mod key_estimate;
pub(crate) mod key_range;
pub(crate) mod range_input;
pub(crate) mod repair_group;
pub(crate) mod sample;
pub(crate) mod scan;
pub(crate) mod scanner_order;
pub(crate) mod sidecar_facts;
pub(crate) mod split_index;
pub(crate) mod sstable;
pub(crate) mod stored_form;
pub(crate) mod trie_files;
pub(crate) mod user_types;

pub use component_file::read_small;
pub use component_list::{ComponentList, len_of_other};
pub use header_union::{HeaderSource, check_schema, column_map, layout_of, union};
pub use key_range::KeyRange;
pub use repair_group::RepairGroup;
pub use scan::Scan;
pub use sidecar_facts::SidecarFacts;
pub use sstable::{
    DataFile, InputSstable, READABLE, check_writable, parse_data_name, refuse_link_without_sidecars,
};
pub use trie_files::{SharedTries, TrieFiles};
pub use user_types::freeze_user_types;
