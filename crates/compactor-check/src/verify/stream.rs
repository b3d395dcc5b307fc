//! Sequential reader of a file from an offset, in pieces requested by a parser.

use compactor_io::{Extent, InputFile, IoError, ReadaheadOptions, SequentialReader};

/// Readahead of each file that is read from front to back.
const READAHEAD: ReadaheadOptions = ReadaheadOptions {
    request_bytes: 1 << 20,
    depth: 4,
};

/// Reads a file from an offset to its end.
#[derive(Debug)]
pub(crate) struct ByteStream {
    reader: SequentialReader,
    extent: Option<Extent>,
    taken: usize,
}

impl ByteStream {
    pub(crate) fn open(file: &InputFile, from: u64) -> ByteStream {
        ByteStream::with_readahead(file, from, READAHEAD)
    }

    /// As [`ByteStream::open`], for a file that is one of many.
    pub(super) fn with_readahead(
        file: &InputFile,
        from: u64,
        readahead: ReadaheadOptions,
    ) -> ByteStream {
        let reader = SequentialReader::new(file.clone(), from..file.len(), readahead);
        ByteStream {
            reader,
            extent: None,
            taken: 0,
        }
    }

    /// Appends the next `len` bytes to `out`, fewer only at the end of the file.
    pub(crate) fn append(&mut self, out: &mut Vec<u8>, mut len: usize) -> Result<(), IoError> {
        while len > 0 {
            let rest = self.rest()?;
            if rest.is_empty() {
                break;
            }
            let now = rest.len().min(len);
            out.extend_from_slice(&rest[..now]);
            self.taken += now;
            len -= now;
        }
        Ok(())
    }

    /// Appends what has been read ahead, or waits for more; false at the end of the file.
    pub(crate) fn append_some(&mut self, out: &mut Vec<u8>) -> Result<bool, IoError> {
        let rest = self.rest()?;
        let len = rest.len();
        out.extend_from_slice(rest);
        self.taken += len;
        Ok(len > 0)
    }

    /// Returns the rest of the current extent, or the next one; empty at the end of the file.
    fn rest(&mut self) -> Result<&[u8], IoError> {
        if self
            .extent
            .as_ref()
            .is_none_or(|extent| self.taken == extent.len())
        {
            // The used extent's buffer returns to the pool before another is waited for.
            self.extent = None;
            self.extent = self.reader.next()?;
            self.taken = 0;
        }
        Ok(self
            .extent
            .as_ref()
            .map_or(&[][..], |extent| &extent[self.taken..]))
    }
}
