//! State of a node and a table that a selection depends on, besides its SSTables.

use crate::live::Live;
use crate::random::TieBreak;

/// A node and a table as they are configured. The default is a node of its own that owns the whole ring.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// `gc_grace_seconds` of the table.
    pub gc_grace_s: i64,
    /// Minimum timestamp of the data in memtables, if there is any.
    pub memtable_min_timestamp: Option<i64>,
    /// Observed size of flushed SSTables, bytes (`flushSizeOnDisk`); zero if none was flushed.
    pub flush_bytes: f64,
    /// `-Dcassandra.never_purge_tombstones`, or that of the table.
    pub never_purges_tombstones: bool,
}

/// Ten days.
const DEFAULT_GC_GRACE_S: i64 = 864_000;

impl Default for Node {
    fn default() -> Node {
        Node {
            gc_grace_s: DEFAULT_GC_GRACE_S,
            memtable_min_timestamp: None,
            flush_bytes: 0.0,
            never_purges_tombstones: false,
        }
    }
}

/// Input of a selection: SSTables, node and time.
#[derive(Debug)]
pub struct Context<'a> {
    /// Live SSTables of the table.
    pub live: &'a Live,
    /// The node.
    pub node: &'a Node,
    /// Time, milliseconds since 1970.
    pub now_ms: i64,
    /// Selection among equals.
    pub ties: &'a mut TieBreak,
}

impl Context<'_> {
    /// Local deletion time before which tombstones are purged, seconds since 1970
    /// (`CompactionManager.getDefaultGcBefore`).
    pub(crate) fn gc_before_s(&self) -> i64 {
        let now_s = self.now_ms.div_euclid(1000);
        now_s.saturating_sub(self.node.gc_grace_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grace_period_may_have_any_length() {
        let gc_before_s = |gc_grace_s| {
            let context = Context {
                live: &Live::default(),
                node: &Node {
                    gc_grace_s,
                    ..Node::default()
                },
                now_ms: -2500,
                ties: &mut TieBreak::First,
            };
            context.gc_before_s()
        };
        assert_eq!(gc_before_s(7), -10);
        assert_eq!(gc_before_s(i64::MAX), i64::MIN);
    }
}
