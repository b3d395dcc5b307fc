//! Options of the commands that purge.

use std::path::PathBuf;

use compactor::{Purging, Scope};

use crate::numbers::{GC_GRACE_SECONDS, moment, moment_or_before_1970, within};

/// Purge options.
#[derive(Debug, clap::Args)]
pub struct PurgeArgs {
    /// The inputs are all that the table has on this node, so tombstones may be purged: a snapshot, which
    /// is flushed first, or the directory of a node that was drained and stopped. Refused where a running
    /// process has SSTables of the directory open, or is a node whose open files this user may not see.
    #[arg(long, help_heading = "Purging", conflicts_with = "overlapping")]
    complete: bool,

    /// An SSTable, or a directory of them, that the table has besides the inputs. Repeat it for all
    /// of them: tombstones that may shadow data in these are kept.
    #[arg(long, help_heading = "Purging", value_name = "TABLE_DIR|Data.db")]
    overlapping: Vec<PathBuf>,

    /// Age in seconds from which tombstones may be purged. Default: schema.cql's. If neither is known, --complete and
    /// --overlapping need --gc-before or --no-purge.
    #[arg(long, help_heading = "Purging", value_name = "N",
        conflicts_with_all = ["gc_before", "no_purge"],
        value_parser = within(GC_GRACE_SECONDS))]
    gc_grace_seconds: Option<u32>,

    /// Purge tombstones with a local deletion time before this, in seconds since 1970.
    #[arg(
        long,
        help_heading = "Purging",
        value_name = "EPOCH",
        conflicts_with = "no_purge",
        value_parser = moment_or_before_1970
    )]
    gc_before: Option<i64>,

    /// Keep every tombstone.
    #[arg(long, help_heading = "Purging")]
    no_purge: bool,

    /// Keep the tombstones of inputs that are not repaired, which replicas may not have yet. Default:
    /// the table's compaction options in schema.cql, otherwise false.
    #[arg(long, help_heading = "Purging", value_name = "true|false", num_args = 0..=1,
        require_equals = true, default_missing_value = "true")]
    only_purge_repaired_tombstones: Option<bool>,

    /// Time at which TTL expiry is evaluated, in seconds since 1970. Default: the clock.
    #[arg(
        long,
        help_heading = "Purging",
        value_name = "EPOCH",
        value_parser = moment
    )]
    now: Option<i64>,

    /// Remove the TTL of cells and rows before anything is reconciled or judged expired: a restored backup has
    /// all of its data again, and it never expires. Tombstones stay, also those that a compaction has made of
    /// expired cells.
    #[arg(long, help_heading = "Purging")]
    strip_ttl: bool,
}

impl PurgeArgs {
    /// The options as the library takes them.
    pub fn purging(&self) -> Purging {
        let mut purging = Purging::default();
        purging.scope = match (self.complete, &self.overlapping[..]) {
            (true, _) => Scope::Complete,
            (false, []) => Scope::Unknown,
            (false, paths) => Scope::Overlapping(paths.to_vec()),
        };
        purging.keep_tombstones = self.no_purge;
        purging.gc_grace_seconds = self.gc_grace_seconds;
        purging.gc_before_s = self.gc_before;
        purging.only_repaired = self.only_purge_repaired_tombstones;
        purging.now_s = self.now;
        purging.strip_ttl = self.strip_ttl;
        purging
    }
}
