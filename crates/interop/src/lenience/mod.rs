//! Our readers accept what Cassandra's accept: both read SSTables of random plans, changed in random ways.
//!
//! Cassandra opens each SSTable, reads it to its end and runs its extended verifier; ours verifies, merges and dumps
//! it, and reports its metadata. If Cassandra finds nothing wrong, none of ours may refuse it, and the merge must hold
//! the rows that Cassandra reads. If both Cassandra's reader and its verifier refuse it, ours must not accept it
//! silently. The exceptions, by kind, are in `exceptions`.

mod campaign;
mod case;
mod change;
mod exceptions;
mod sstable_files;

pub use campaign::{Campaign, Report};
pub use change::Change;
pub use exceptions::{is_stricter_in_verify, is_stricter_on_purpose};
