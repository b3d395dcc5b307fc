//! Copies of SSTables, and ways to damage them.

use std::fs;
use std::path::{Path, PathBuf};

use compactor_sstable::compression::chunk::{ChunkCompressor, ChunkDecompressor};
use compactor_sstable::compression::crc32;
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::statistics::Statistics;
use compactor_sstable::{Component, Version, digest};

/// A copy of an SSTable in its own directory, which is removed on drop.
pub struct Copy {
    directory: tempfile::TempDir,
    descriptor: Descriptor,
}

impl Copy {
    /// Copies all components of the SSTable whose `Data.db` is `data`.
    pub fn of(data: &Path) -> Copy {
        let directory = tempfile::tempdir().unwrap();
        let mut descriptor = Descriptor::parse(data).unwrap().descriptor;
        for component in Component::ALL {
            let from = descriptor.path(component);
            if from.exists() {
                let to = directory.path().join(descriptor.file_name(component));
                fs::copy(from, to).unwrap();
            }
        }
        descriptor.directory = directory.path().to_owned();
        Copy {
            directory,
            descriptor,
        }
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Its `Data.db`.
    pub fn data(&self) -> PathBuf {
        self.path(Component::Data)
    }

    /// Path of a component.
    pub fn path(&self, component: Component) -> PathBuf {
        self.descriptor.path(component)
    }

    /// Components that it has.
    pub fn components(&self) -> Vec<Component> {
        Component::ALL
            .into_iter()
            .filter(|c| self.path(*c).exists())
            .collect()
    }

    /// Bytes of a component.
    pub fn read(&self, component: Component) -> Vec<u8> {
        fs::read(self.path(component)).unwrap()
    }

    /// Replaces a component.
    pub fn write(&self, component: Component, bytes: &[u8]) {
        fs::write(self.path(component), bytes).unwrap();
    }

    /// Changes a component.
    pub fn edit(&self, component: Component, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.read(component);
        edit(&mut bytes);
        self.write(component, &bytes);
    }

    /// Flips one bit.
    pub fn flip(&self, component: Component, at: usize, bit: u8) {
        self.edit(component, |bytes| bytes[at] ^= 1 << bit);
    }

    /// Truncates a component to `len` bytes.
    pub fn truncate(&self, component: Component, len: usize) {
        self.edit(component, |bytes| bytes.truncate(len));
    }

    /// Removes a component.
    pub fn remove(&self, component: Component) {
        fs::remove_file(self.path(component)).unwrap();
    }

    /// Removes a component and its line in the TOC.
    pub fn remove_and_unlist(&self, component: Component) {
        self.remove(component);
        self.edit(Component::Toc, |toc| {
            let text = String::from_utf8(std::mem::take(toc)).unwrap();
            let lines = text.lines().filter(|line| *line != component.file_suffix());
            *toc = lines
                .flat_map(|line| [line, "\n"])
                .collect::<String>()
                .into_bytes();
        });
    }

    /// Changes the uncompressed content of `Data.db` and makes checksums, chunk offsets and ratio fit
    /// it, so that only the content shows the change.
    pub fn edit_content(&self, edit: impl FnOnce(&mut Vec<u8>)) {
        if self.path(Component::Crc).exists() {
            self.edit(Component::Data, edit);
            self.fix_crc_file();
            return self.fix_digest();
        }
        let stored = self.read(Component::Data);
        let version = self.descriptor.version;
        let info = self.read(Component::CompressionInfo);
        let info = CompressionInfo::parse(&info, version, stored.len() as u64).unwrap();
        let mut decompressor = ChunkDecompressor::for_file(&info).unwrap();
        let mut content = Vec::new();
        for chunk in (0..info.chunk_count()).map(|index| info.chunk(index).unwrap()) {
            let range = chunk.offset as usize..(chunk.offset + chunk.stored_len) as usize;
            let start = content.len();
            content.resize(start + chunk.raw_len as usize, 0);
            decompressor
                .decompress(&stored[range], chunk.offset, &mut content[start..])
                .unwrap();
        }
        edit(&mut content);
        let mut compressor = ChunkCompressor::new(&info.params).unwrap();
        let mut made = CompressionInfo::new(info.params.clone());
        let mut stored = Vec::new();
        for chunk in content.chunks(info.params.chunk_len as usize) {
            let lengths = compressor.compress(chunk, &mut stored).unwrap();
            made.push_chunk(chunk.len() as u32, lengths.stored_len);
        }
        let mut bytes = Vec::new();
        made.write(&mut bytes, version).unwrap();
        self.write(Component::Data, &stored);
        self.write(Component::CompressionInfo, &bytes);
        self.edit_statistics(|s| s.stats.compression_ratio = made.compression_ratio());
        self.fix_digest();
    }

    /// Changes the statistics, with correct checksums.
    pub fn edit_statistics(&self, edit: impl FnOnce(&mut Statistics)) {
        let version = self.descriptor.version;
        self.edit(Component::Statistics, |bytes| {
            let mut statistics = Statistics::parse(bytes, version).unwrap();
            edit(&mut statistics);
            bytes.clear();
            statistics.write(bytes, version).unwrap();
        });
    }

    /// Recomputes the digest of `Data.db`.
    pub fn fix_digest(&self) {
        let mut bytes = Vec::new();
        digest::write(&mut bytes, crc32(&self.read(Component::Data)));
        self.write(Component::Digest, &bytes);
    }

    /// Recomputes every checksum in `CRC.db`.
    pub fn fix_crc_file(&self) {
        let data = self.read(Component::Data);
        self.edit(Component::Crc, |bytes| {
            let chunk = u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize;
            bytes.truncate(4);
            for chunk in data.chunks(chunk) {
                bytes.extend_from_slice(&crc32(chunk).to_be_bytes());
            }
        });
    }

    /// Makes the checksums of `Statistics.db` fit its bytes, as far as its table of contents can
    /// be followed.
    pub fn fix_statistics(&self) {
        self.edit(Component::Statistics, |bytes| fix_statistics(bytes));
    }
}

/// Copies an uncompressed SSTable of version `nb` as one of a version before 4.0, with changed statistics.
pub fn copy_as_old(
    data: &Path,
    directory: &Path,
    version: Version,
    edit: impl FnOnce(&mut Statistics),
) -> PathBuf {
    fs::create_dir_all(directory).unwrap();
    let from = Descriptor::parse(data).unwrap().descriptor;
    let to = Descriptor::new(directory, version, from.id);
    let mut edit = Some(edit);
    for component in Component::ALL {
        let Ok(mut bytes) = fs::read(from.path(component)) else {
            continue;
        };
        match component {
            Component::Statistics => {
                let mut statistics = Statistics::parse(&bytes, from.version).unwrap();
                edit.take().unwrap()(&mut statistics);
                bytes.clear();
                statistics.write(&mut bytes, version).unwrap();
            }
            // Words were written, not bytes.
            Component::Filter => bytes[8..].chunks_exact_mut(8).for_each(<[u8]>::reverse),
            _ => {}
        }
        fs::write(to.path(component), bytes).unwrap();
    }
    to.path(Component::Data)
}

/// See [`Copy::fix_statistics`].
pub fn fix_statistics(bytes: &mut [u8]) {
    let word = |bytes: &[u8], at: usize| -> Option<usize> {
        let raw = bytes.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(i32::from_be_bytes(raw)).ok()
    };
    let put = |bytes: &mut [u8], at: usize, crc: u32| {
        if let Some(target) = bytes.get_mut(at..at + 4) {
            target.copy_from_slice(&crc.to_be_bytes());
        }
    };
    let Some(count) = word(bytes, 0).filter(|&count| count <= 4) else {
        return;
    };
    let mut covered = bytes[..4].to_vec();
    put(bytes, 4, crc32(&covered));
    let toc = 8..8 + 8 * count;
    let Some(entries) = bytes.get(toc.clone()) else {
        return;
    };
    covered.extend_from_slice(entries);
    put(bytes, toc.end, crc32(&covered));
    for index in 0..count {
        let Some(start) = word(bytes, toc.start + 8 * index + 4) else {
            continue;
        };
        let next = word(bytes, toc.start + 8 * (index + 1) + 4).filter(|_| index + 1 < count);
        let Some(end) = next.unwrap_or(bytes.len()).checked_sub(4) else {
            continue;
        };
        if let Some(content) = bytes.get(start..end) {
            let crc = crc32(content);
            put(bytes, end, crc);
        }
    }
}
