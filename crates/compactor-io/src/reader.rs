//! Sequential reading with readahead.

use std::collections::VecDeque;
use std::ops::Range;

use crate::align::round_up;
use crate::backend::assert_may_block;
use crate::error::{IoError, IoErrorKind, IoOperation};
use crate::extent::Extent;
use crate::input::{InputFile, PendingRead, SMALL_READ_BYTES};

/// Readahead options of a [`SequentialReader`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadaheadOptions {
    /// Length of a request, bytes; rounded up to the file's alignment.
    pub request_bytes: usize,
    /// Number of requests in flight or waiting to be taken; at least 1. The reader holds up to this number of
    /// buffers, in addition to the extents that the caller keeps.
    pub depth: usize,
}

impl Default for ReadaheadOptions {
    /// 1 MiB × 8: a device that takes 4 ms for a request still reaches 2 GB/s.
    fn default() -> Self {
        ReadaheadOptions {
            request_bytes: 1 << 20,
            depth: 8,
        }
    }
}

/// Sequential reader of a range of a file, with requests in flight ahead of the caller.
///
/// - Extents are returned in order and without gaps; all but the first and the last start and end at
///   multiples of the request length.
/// - After an error every further call returns an error.
#[derive(Debug)]
pub struct SequentialReader {
    input: InputFile,
    request_bytes: u64,
    depth: usize,
    /// Start of the next request, and end of the last one.
    next_offset: u64,
    end: u64,
    /// Submitted requests, oldest first.
    ahead: VecDeque<PendingRead>,
    failed: Option<IoError>,
}

impl SequentialReader {
    /// Starts reading `range` of `input`, truncated to the end of the file. Bounds are arbitrary: the first
    /// request is shorter if that aligns the others.
    pub fn new(input: InputFile, range: Range<u64>, options: ReadaheadOptions) -> SequentialReader {
        input.advise_sequential();
        let alignment = input.alignment();
        let request_bytes = round_up((options.request_bytes as u64).max(1), alignment);
        let end = range.end.min(input.len());
        let mut reader = SequentialReader {
            next_offset: range.start.min(end),
            end,
            input,
            request_bytes,
            depth: options.depth.max(1),
            ahead: VecDeque::new(),
            failed: None,
        };
        reader.submit_ahead();
        reader
    }

    /// Starts reading a whole file.
    pub fn whole(input: InputFile, options: ReadaheadOptions) -> SequentialReader {
        let len = input.len();
        SequentialReader::new(input, 0..len, options)
    }

    /// The file.
    pub fn input(&self) -> &InputFile {
        &self.input
    }

    fn submit_ahead(&mut self) {
        while self.ahead.len() < self.depth && self.next_offset < self.end {
            let offset = self.next_offset;
            let len = self.request_bytes - offset % self.request_bytes;
            let end = (offset + len).min(self.end);
            // At most the length of a request, which was a usize.
            let len = (end - offset) as usize;
            self.ahead
                .push_back(self.input.start_read(offset, len, false));
            self.next_offset = end;
        }
    }

    /// Waits for the next extent; `None` at the end of the range.
    ///
    /// # Errors
    ///
    /// As [`InputFile::submit_read`]. The error repeats.
    ///
    /// # Panics
    ///
    /// If called from a completion, on an I/O thread.
    #[expect(
        clippy::should_implement_trait,
        reason = "a failing step: Result<Option<_>>"
    )]
    pub fn next(&mut self) -> Result<Option<Extent>, IoError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let Some(oldest) = self.ahead.pop_front() else {
            return Ok(None);
        };
        assert_may_block("SequentialReader::next");
        match oldest.wait(&self.input) {
            Ok(extent) => {
                self.submit_ahead();
                Ok(Some(extent))
            }
            Err(error) => {
                self.failed = Some(error.clone());
                // Other requests in flight complete without being used.
                self.next_offset = self.end;
                Err(error)
            }
        }
    }
}

impl InputFile {
    /// Reads the whole file, in large requests, and waits for it.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](IoErrorKind::TooLarge) if the file is longer than `limit_bytes`; otherwise as
    /// [`submit_read`](Self::submit_read).
    ///
    /// # Panics
    ///
    /// If called from a completion, on an I/O thread.
    pub fn read_all(&self, limit_bytes: u64) -> Result<Vec<u8>, IoError> {
        let len = self.len();
        if len > limit_bytes {
            let reason = format!("the file has {len} bytes, at most {limit_bytes} are accepted");
            let kind = IoErrorKind::TooLarge;
            return Err(IoError::found(IoOperation::Read, kind, self.path(), reason));
        }
        if len <= SMALL_READ_BYTES as u64 {
            return Ok(self.read_at(0, len as usize)?.to_vec());
        }
        // The length of the file, which is within the caller's limit.
        let mut bytes = Vec::with_capacity(len as usize);
        let mut reader = SequentialReader::new(self.clone(), 0..len, ReadaheadOptions::default());
        while let Some(extent) = reader.next()? {
            bytes.extend_from_slice(&extent);
        }
        Ok(bytes)
    }
}
