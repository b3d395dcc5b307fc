//! Update time of an SSTable in a transaction log.

use compactor_engine::publish::FileIdentity;
use compactor_sstable::Component;

/// Returns the modification time of the newest of these files, as Cassandra computes it: milliseconds, without
/// `Statistics.db` (`LogRecord.make`); 0 for none.
pub(super) fn update_time_ms<'a>(files: impl Iterator<Item = (&'a str, &'a FileIdentity)>) -> i64 {
    files
        .filter(|(name, _)| !name.ends_with(Component::Statistics.file_suffix()))
        .map(|(_, file)| file.modified_ns.div_euclid(1_000_000))
        .max()
        .unwrap_or(0)
}
