//! Synthesized bytes where those of the original are lost: heads of partitions, empty static rows, and bounds of
//! range tombstones.

use compactor_sstable::data::clustering::{Kind, Prefix};
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::Layout;

/// Position in a partition, encoded as in the promoted index: a kind, then its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Name(pub(super) Vec<u8>);

impl Name {
    /// Position of an unfiltered. `body` is the clustering without its kind.
    pub(super) fn set(&mut self, kind: Kind, body: &[u8]) {
        self.0.clear();
        self.0.push(kind as u8);
        self.0.extend_from_slice(body);
    }

    /// True of bounds that sort before the rows with their values.
    pub(super) fn is_before(&self) -> bool {
        let kind = self.0.first().copied().and_then(Kind::from_ordinal);
        kind.is_some_and(is_before)
    }

    /// Calls `f` with the parsed position; `None` if it cannot be parsed. One that was read before can.
    pub(super) fn with<T>(&self, layout: &Layout, f: impl FnOnce(Prefix<'_>) -> T) -> Option<T> {
        let mut spans = Vec::new();
        let prefix = layout.clustering.parse_name(&self.0, &mut spans).ok()?;
        Some(f(prefix))
    }
}

/// The head of a partition without its static row.
pub(super) fn key_and_deletion(layout: &Layout, key: &[u8], deletion: &DeletionTime) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + 20);
    out.extend_from_slice(&(key.len() as u16).to_be_bytes());
    out.extend_from_slice(key);
    deletion.write(&mut out, layout.version);
    out
}

/// The head of a partition, with an empty static row where the table has static columns.
pub(super) fn head(layout: &Layout, key: &[u8], deletion: &DeletionTime) -> Vec<u8> {
    let mut out = key_and_deletion(layout, key, deletion);
    if layout.has_static() {
        layout.put_empty_static_row(&mut out);
    }
    out
}

/// A marker at `name` that closes `close` and opens `open`, either of which may be live. `is_before` specifies on which
/// side of its values it is. Empty if both are live.
pub(super) fn marker(
    layout: &Layout,
    name: &Name,
    is_before: bool,
    close: &DeletionTime,
    open: &DeletionTime,
) -> Vec<u8> {
    let mut out = Vec::new();
    let kind = match (is_before, !close.is_live(), !open.is_live()) {
        (_, false, false) => return out,
        (true, true, false) => Kind::ExclEndBound,
        (true, false, true) => Kind::InclStartBound,
        (true, true, true) => Kind::ExclEndInclStartBoundary,
        (false, true, false) => Kind::InclEndBound,
        (false, false, true) => Kind::ExclStartBound,
        (false, true, true) => Kind::InclEndExclStartBoundary,
    };
    name.with(layout, |place| {
        let mut bound = Vec::new();
        let clustering = &layout.clustering;
        clustering.write_prefix(&mut bound, kind, place.values());
        layout.put_marker(&mut out, kind, &bound, close, open, 0);
    });
    out
}

/// True for bounds that sort before the rows with their values.
pub(super) fn is_before(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::ExclEndBound | Kind::InclStartBound | Kind::ExclEndInclStartBoundary
    )
}
