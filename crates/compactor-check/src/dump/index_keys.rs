//! Partition keys from `Index.db`, a few requests ahead and never the whole file.

use std::path::PathBuf;

use compactor_engine::input::InputSstable;
use compactor_io::{Io, ReadMode, ReadaheadOptions, SequentialReader};
use compactor_sstable::big::index::IndexEntry;
use compactor_sstable::{Component, Error as FormatError};

use crate::{Error, Result};

/// The entries of an `Index.db` one after another.
pub(super) struct IndexKeys {
    reader: SequentialReader,
    path: PathBuf,
    file_len: u64,
    /// Bytes read; those from `start` on are not parsed yet.
    bytes: Vec<u8>,
    start: usize,
    /// Offset in the file of `bytes[start]`.
    offset: u64,
}

impl IndexKeys {
    pub(super) fn open(io: &Io, sstable: &InputSstable, mode: ReadMode) -> Result<IndexKeys> {
        let path = sstable.descriptor.path(Component::Index);
        let file = io.open(&path, mode)?;
        Ok(IndexKeys {
            file_len: file.len(),
            reader: SequentialReader::whole(file, ReadaheadOptions::default()),
            path,
            bytes: Vec::new(),
            start: 0,
            offset: 0,
        })
    }

    /// Calls `print` with each key until it returns false.
    pub(super) fn for_each(mut self, print: &mut dyn FnMut(&[u8]) -> Result<bool>) -> Result<()> {
        while let Some(key) = self.next_key()? {
            if !print(key)? {
                break;
            }
        }
        Ok(())
    }

    /// The next key; `None` at the end of the file.
    fn next_key(&mut self) -> Result<Option<&[u8]>> {
        loop {
            match IndexEntry::try_parse(&self.bytes[self.start..], self.offset) {
                Ok(Some((entry, len))) => {
                    // A length of two bytes precedes the key.
                    let key = self.start + 2..self.start + 2 + entry.key.len();
                    self.start += len;
                    self.offset += len as u64;
                    return Ok(Some(&self.bytes[key]));
                }
                Ok(None) => {}
                Err(error) => return Err(error.with_file(&self.path, Component::Index).into()),
            }
            self.bytes.drain(..self.start);
            self.start = 0;
            match self.reader.next()? {
                Some(extent) => self.bytes.extend_from_slice(&extent),
                None if self.bytes.is_empty() => return Ok(None),
                None => return Err(self.cut_off()),
            }
        }
    }

    fn cut_off(&self) -> Error {
        let found = format!("the end of the file at {}", self.file_len);
        FormatError::corrupt("index.entry", self.offset, "a whole entry", found)
            .with_file(&self.path, Component::Index)
            .into()
    }
}
