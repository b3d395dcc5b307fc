//! A row as a view over its input's window.

use compactor_sstable::Error as FormatError;
use compactor_sstable::data::layout::Layout;
use compactor_sstable::data::row::RowBody;
use compactor_sstable::data::unfiltered::RowHead;

use crate::error::Result;

/// A row in its input's window.
#[derive(Clone, Copy, Debug)]
pub struct RowRef<'a> {
    /// From the row's first byte on; longer than the row.
    pub bytes: &'a [u8],
    /// Where its parts lie.
    pub head: RowHead,
    /// Layout of the input.
    pub layout: &'a Layout,
}

impl<'a> RowRef<'a> {
    /// The serialized clustering, without kind or count.
    #[inline]
    pub fn clustering_bytes(&self) -> &'a [u8] {
        &self.bytes[self.head.clustering_start..self.head.clustering_end]
    }

    /// Opens the body.
    ///
    /// # Errors
    /// Damage, relative to the row's first byte.
    #[inline]
    pub fn body(&self) -> Result<RowBody<'a>, FormatError> {
        RowBody::open(self.bytes, &self.head, self.layout)
    }

    /// The body, of which nothing is read yet: see [`RowBody::unread`].
    #[inline]
    pub fn unread_body(&self) -> RowBody<'a> {
        RowBody::unread(self.bytes, &self.head, self.layout)
    }

    /// Length of the body without sizes, an estimate of what it will take when written.
    #[inline]
    pub fn body_len(&self) -> usize {
        self.head.len - self.head.body_start
    }
}
