//! A copy of an SSTable that is changed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use compactor_sstable::Component;
use compactor_sstable::compression::crc32;
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::digest;

use crate::files;

/// The files of one SSTable, in a directory of their own.
#[derive(Debug)]
pub(super) struct SstableFiles {
    descriptor: Descriptor,
}

impl SstableFiles {
    /// Copies the SSTable of `data` into a new `directory`.
    pub(super) fn copy(data: &Path, directory: &Path) -> Result<SstableFiles> {
        let _ = fs::remove_dir_all(directory);
        let copied = files::copy(data, directory)?;
        let descriptor = Descriptor::parse(&copied)?.descriptor;
        Ok(SstableFiles { descriptor })
    }

    pub(super) fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    pub(super) fn path(&self, component: Component) -> PathBuf {
        self.descriptor.path(component)
    }

    pub(super) fn data(&self) -> PathBuf {
        self.path(Component::Data)
    }

    pub(super) fn has(&self, component: Component) -> bool {
        self.path(component).exists()
    }

    pub(super) fn components(&self) -> Vec<Component> {
        let all = Component::ALL.into_iter();
        all.filter(|component| self.has(*component)).collect()
    }

    pub(super) fn read(&self, component: Component) -> Result<Vec<u8>> {
        let path = self.path(component);
        fs::read(&path).with_context(|| path.display().to_string())
    }

    pub(super) fn write(&self, component: Component, bytes: &[u8]) -> Result<()> {
        Ok(fs::write(self.path(component), bytes)?)
    }

    pub(super) fn edit(&self, component: Component, edit: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let mut bytes = self.read(component)?;
        edit(&mut bytes);
        self.write(component, &bytes)
    }

    pub(super) fn remove(&self, component: Component) -> Result<()> {
        Ok(fs::remove_file(self.path(component))?)
    }

    /// Changes the lines of `TOC.txt`.
    pub(super) fn edit_toc(&self, edit: impl FnOnce(&mut Vec<String>)) -> Result<()> {
        let text = String::from_utf8(self.read(Component::Toc)?)?;
        let mut lines = text.lines().map(str::to_owned).collect();
        edit(&mut lines);
        let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
        self.write(Component::Toc, text.as_bytes())
    }

    /// Recomputes the checksums of `Statistics.db`, as far as its table of contents can be followed.
    pub(super) fn mend_statistics(&self) -> Result<()> {
        self.edit(Component::Statistics, |bytes| {
            mend_statistics(bytes);
        })
    }

    /// Recomputes every checksum of `Data.db`, in it and in other components.
    pub(super) fn mend_data(&self) -> Result<()> {
        let mut data = self.read(Component::Data)?;
        if self.has(Component::CompressionInfo) {
            let info = self.read(Component::CompressionInfo)?;
            let version = self.descriptor.version;
            let info = CompressionInfo::parse(&info, version, data.len() as u64)?;
            for chunk in (0..info.chunk_count()).filter_map(|index| info.chunk(index)) {
                let start = usize::try_from(chunk.offset)?;
                let end = start + usize::try_from(chunk.stored_len)? - 4;
                let crc = crc32(&data[start..end]);
                data[end..end + 4].copy_from_slice(&crc.to_be_bytes());
            }
            self.write(Component::Data, &data)?;
        }
        if self.has(Component::Crc) {
            self.edit(Component::Crc, |bytes| {
                let chunk = bytes
                    .first_chunk::<4>()
                    .map_or(1, |len| u32::from_be_bytes(*len));
                bytes.truncate(4);
                for chunk in data.chunks(chunk as usize) {
                    bytes.extend_from_slice(&crc32(chunk).to_be_bytes());
                }
            })?;
        }
        let mut text = Vec::new();
        digest::write(&mut text, crc32(&data));
        self.write(Component::Digest, &text)
    }
}

fn mend_statistics(bytes: &mut [u8]) -> Option<()> {
    let word = |bytes: &[u8], at: usize| -> Option<usize> {
        let raw = bytes.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(i32::from_be_bytes(raw)).ok()
    };
    let put = |bytes: &mut [u8], at: usize, crc: u32| -> Option<()> {
        let target = bytes.get_mut(at..at + 4)?;
        target.copy_from_slice(&crc.to_be_bytes());
        Some(())
    };
    let count = word(bytes, 0).filter(|&count| count <= 4)?;
    let mut covered = bytes.get(..4)?.to_vec();
    put(bytes, 4, crc32(&covered))?;
    let toc = 8..8 + 8 * count;
    covered.extend_from_slice(bytes.get(toc.clone())?);
    put(bytes, toc.end, crc32(&covered))?;
    for index in 0..count {
        let start = word(bytes, toc.start + 8 * index + 4)?;
        let next = word(bytes, toc.start + 8 * (index + 1) + 4).filter(|_| index + 1 < count);
        let end = next.unwrap_or(bytes.len()).checked_sub(4)?;
        let crc = crc32(bytes.get(start..end)?);
        put(bytes, end, crc)?;
    }
    Some(())
}
