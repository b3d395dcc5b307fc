//! The table of contents of Statistics.db and its checksums.
//!
//! Source: `MetadataSerializer.serialize`, `MetadataSerializer.deserialize`.

use crate::byte_reader::ByteReader;
use crate::byte_sink::ByteSink;
use crate::compression::crc32;
use crate::error::{Error, Result};
use crate::version::Version;

/// Ordinals of `MetadataType`.
pub(super) const VALIDATION: usize = 0;
pub(super) const COMPACTION: usize = 1;
pub(super) const STATS: usize = 2;
pub(super) const HEADER: usize = 3;

const NAMES: [&str; 4] = ["VALIDATION", "COMPACTION", "STATS", "HEADER"];
const CRC_LEN: usize = 4;

/// Components by ordinal.
pub(super) struct Components<'a> {
    found: [Option<ByteReader<'a>>; 4],
}

impl<'a> Components<'a> {
    pub(super) fn get(&self, ordinal: usize) -> Option<ByteReader<'a>> {
        self.found.get(ordinal).cloned().flatten()
    }

    pub(super) fn require(&self, ordinal: usize) -> Result<ByteReader<'a>> {
        self.get(ordinal).ok_or_else(|| {
            Error::corrupt(
                "statistics.toc",
                0,
                format!("component {}", NAMES[ordinal]),
                "none",
            )
        })
    }
}

pub(super) fn parse(bytes: &[u8], version: Version) -> Result<Components<'_>> {
    let checksummed = version.has_metadata_checksum();
    let mut reader = ByteReader::new(bytes);
    let count = reader.i32_count(8, "statistics.count")?;
    // A running checksum: over the count, then also over the table of contents.
    let mut crc = crc32fast::Hasher::new();
    crc.update(&bytes[..reader.position()]);
    if checksummed {
        check(&mut reader, "statistics.count_crc", crc.clone().finalize())?;
    }
    let toc_start = reader.position();
    let mut toc = Vec::with_capacity(count);
    for _ in 0..count {
        let at = reader.offset();
        let ordinal = reader.i32("statistics.toc.type")?;
        let offset = reader.i32("statistics.toc.offset")?;
        let ordinal = usize::try_from(ordinal)
            .ok()
            .filter(|&o| o < NAMES.len())
            .ok_or_else(|| Error::corrupt("statistics.toc.type", at, "0 to 3", ordinal))?;
        toc.push((ordinal, offset, at));
    }
    crc.update(&bytes[toc_start..reader.position()]);
    if checksummed {
        check(&mut reader, "statistics.toc_crc", crc.finalize())?;
    }
    if !checksummed {
        // Readers before 4.0 look each component up by its offset, and writers before 4.0 list components in
        // the order of a hash table. Later readers read them one after the other.
        toc.sort_by_key(|&(_, offset, _)| offset);
    }
    let mut components = Components {
        found: [const { None }; 4],
    };
    let mut lowest = reader.position();
    for (index, &(ordinal, offset, at)) in toc.iter().enumerate() {
        let end = toc
            .get(index + 1)
            .map_or(bytes.len() as i64, |next| i64::from(next.1));
        let range = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
        let Some((start, content)) = range
            .and_then(|(from, to)| Some((from, bytes.get(from..to)?)))
            .filter(|r| r.0 >= lowest)
        else {
            return Err(Error::corrupt(
                "statistics.toc.offset",
                at + 4,
                format!("a component between {lowest} and {}", bytes.len()),
                format!("one from {offset} to {end}"),
            ));
        };
        lowest = start + content.len();
        let mut content_reader = ByteReader::with_base(content, start as u64);
        if checksummed {
            let Some((body, _)) = content.split_last_chunk::<CRC_LEN>() else {
                return Err(content_reader.corrupt(
                    NAMES[ordinal],
                    "at least 4 bytes",
                    content.len(),
                ));
            };
            let at_crc = start + body.len();
            let mut crc_reader = ByteReader::with_base(&content[body.len()..], at_crc as u64);
            check(&mut crc_reader, "statistics.component_crc", crc32(body))?;
            content_reader = ByteReader::with_base(body, start as u64);
        }
        if components.found[ordinal].replace(content_reader).is_some() {
            return Err(Error::corrupt(
                "statistics.toc.type",
                at,
                "each type once",
                NAMES[ordinal],
            ));
        }
    }
    Ok(components)
}

fn check(reader: &mut ByteReader<'_>, structure: &'static str, computed: u32) -> Result<()> {
    let at = reader.offset();
    let stored = reader.u32(structure)?;
    if stored == computed {
        return Ok(());
    }
    let expected = format!("{computed:08x}, the CRC32 of the bytes before it");
    Err(Error::corrupt(
        structure,
        at,
        expected,
        format!("{stored:08x}"),
    ))
}

/// Appends components, in ascending order of their ordinals.
pub(super) fn write(out: &mut Vec<u8>, version: Version, parts: &[(usize, Vec<u8>)]) -> Result<()> {
    let crc_len = if version.has_metadata_checksum() {
        CRC_LEN
    } else {
        0
    };
    let mut offset = 4 + 8 * parts.len() + 2 * crc_len;
    let mut head = Vec::with_capacity(offset);
    head.put_i32(parts.len() as i32);
    let put_running_crc = |head: &mut Vec<u8>, covered: &[u8]| {
        if crc_len > 0 {
            head.put_u32(crc32(covered));
        }
    };
    let mut covered = head.clone();
    put_running_crc(&mut head, &covered);
    for (ordinal, bytes) in parts {
        let toc_start = head.len();
        head.put_i32(*ordinal as i32);
        head.put_i32(i32::try_from(offset).map_err(|_| {
            Error::unsupported(format!(
                "statistics of {offset} bytes before {}",
                NAMES[*ordinal]
            ))
        })?);
        covered.extend_from_slice(&head[toc_start..]);
        offset += bytes.len() + crc_len;
    }
    put_running_crc(&mut head, &covered);
    out.extend_from_slice(&head);
    for (_, bytes) in parts {
        out.extend_from_slice(bytes);
        put_running_crc(out, bytes);
    }
    Ok(())
}
