//! How the `Data.db` of an SSTable is stored, as `CompressionInfo.db` or `CRC.db` states it.

use compactor_io::{Io, ReadMode};
use compactor_sstable::compression::chunk::ChunkDecompressor;
use compactor_sstable::compression::crc_file::CrcFile;
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::{Component, Error as FormatError};

use crate::error::{Error, Result};
use crate::input::component_file::read_small;
use crate::input::component_list::{ComponentList, ListFinding};
use crate::read::encoding::Encoding;

/// Reads how a `Data.db` of this length is stored. `notes` gets what is odd, but no damage.
///
/// # Errors
/// A damaged or unsupported `CompressionInfo.db`, an empty file, or a failed read.
pub(crate) fn read_encoding(
    io: &Io,
    mode: ReadMode,
    descriptor: &Descriptor,
    files: &ComponentList,
    data_file_len: u64,
    notes: &mut Vec<ListFinding>,
) -> Result<Encoding> {
    let read = |component| read_small(io, mode, &descriptor.path(component));
    if files.has(Component::CompressionInfo) {
        let at = Error::format(descriptor, Component::CompressionInfo);
        let bytes = read(Component::CompressionInfo)?;
        let info = CompressionInfo::parse(&bytes, descriptor.version, data_file_len).map_err(at)?;
        let decompressor = ChunkDecompressor::for_file(&info).map_err(at)?;
        if let Some(odd) = info.params.odd_max_compressed_len() {
            notes.push(ListFinding::note(
                Component::CompressionInfo,
                "compression_info.max_compressed_length",
                "a maximum compressed length of at most a chunk, or none",
                odd.to_string(),
            ));
        }
        if info.unread_len > 0 {
            notes.push(ListFinding::note(
                Component::CompressionInfo,
                "compression_info.end",
                "the end of CompressionInfo.db after the offsets",
                format!(
                    "{} more bytes, which Cassandra does not read",
                    info.unread_len
                ),
            ));
        }
        return Ok(Encoding::Compressed { info, decompressor });
    }
    if data_file_len == 0 {
        let error = FormatError::corrupt("data", 0, "at least one partition", "an empty file");
        return Err(Error::format(descriptor, Component::Data)(error));
    }
    let crc = if files.has(Component::Crc) {
        let bytes = read(Component::Crc)?;
        match CrcFile::parse(&bytes, data_file_len) {
            Ok(crc) => Some(crc),
            // A node's reads do not use it, but streaming does.
            Err(FormatError::Corrupt(error)) => {
                let expected = format!("{} in CRC.db", error.expected);
                let found = error.found;
                notes.push(ListFinding::note(
                    Component::Crc,
                    error.structure,
                    expected,
                    found,
                ));
                CrcFile::parse_start(&bytes, data_file_len)
            }
            Err(error) => return Err(Error::format(descriptor, Component::Crc)(error)),
        }
    } else {
        None
    };
    Ok(Encoding::Plain {
        crc,
        len: data_file_len,
    })
}
