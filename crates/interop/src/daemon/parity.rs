//! Comparison of our merge of a node's flushed SSTables with the node's own compaction of them.

use std::path::Path;

use anyhow::Result;
use compactor::metadata::MetadataOptions;
use compactor_io::{Io, IoOptions};
use compactor_sstable::version::Version;
use serde_json::Value;

use super::content;
use super::kind::Kind;
use crate::files::{self, version};
use crate::parity::{Exception, Reader, differences_by};

/// Fields about the files and not their content, and the level, which the node decides.
const OF_THE_FILE: [&str; 9] = [
    "components",
    "compression",
    "id",
    "keyspace",
    "recorded_compression_ratio",
    "sstable",
    "sstable_level",
    "table",
    "total_bytes",
];

/// Reads with our own library: the node may be down, or may no longer have the files.
struct Library(Version);

impl Reader for Library {
    fn content(&mut self, data: &Path) -> Result<Vec<u8>> {
        content::read(data, self.0)
    }

    fn metadata(&mut self, data: &Path) -> Result<Value> {
        let io = Io::new(IoOptions::default())?;
        let metadata = compactor::metadata::read(&io, data, &MetadataOptions::new(0))?;
        let mut stats = serde_json::to_value(metadata)?;
        if let Some(stats) = stats.as_object_mut() {
            stats.retain(|name, _| !OF_THE_FILE.contains(&name.as_str()));
        }
        Ok(serde_json::json!({ "stats": stats }))
    }
}

/// Whether two SSTables hold the same rows, to the byte.
pub(crate) fn is_same_content(one: &Path, other: &Path) -> Result<bool> {
    Ok(content::read(one, version(one)?)? == content::read(other, version(other)?)?)
}

/// Returns byte differences between our SSTable and the node's.
pub(crate) fn differences(kind: Kind, theirs: &Path, ours: &Path) -> Result<Vec<String>> {
    let version = version(theirs)?;
    let mut granted = vec![Exception::NodesOwn];
    granted.extend((kind.major() < 5).then_some(Exception::OtherBuckets));
    differences_by(&mut Library(version), version, theirs, ours, &granted)
}

/// Special cases of an SSTable's compression.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Marks {
    /// Chunks are compressed with a dictionary.
    pub(crate) dictionary: bool,
    /// The last chunk has no bytes.
    pub(crate) empty_end: bool,
    /// The last byte of the content is the last of a chunk.
    pub(crate) chunk_end: bool,
}

/// Returns the special cases of an SSTable's compression.
pub(crate) fn marks(data: &Path) -> Result<Marks> {
    let info = files::compression(data, version(data)?)?;
    Ok(info.map_or_else(Marks::default, |info| Marks {
        dictionary: info.dictionary.is_some(),
        empty_end: info.empty_chunk_count() > 0,
        chunk_end: info
            .data_len
            .is_multiple_of(u64::from(info.params.chunk_len)),
    }))
}
