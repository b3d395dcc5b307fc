//! Our readers accept what Cassandra's accept: both read SSTables of random plans, changed in random ways.
//!
//! Cassandra opens each, reads it to its end and runs its extended verifier; ours verifies, merges, dumps and reports what it
//! says of itself. What all three of Cassandra's find nothing in, none of ours may refuse, and the merge must hold the rows
//! that Cassandra reads; what both its reader and its verifier refuse, ours must not take without a word. The exceptions,
//! by kind, are in `exceptions`.

mod campaign;
mod case;
mod change;
mod exceptions;
mod sstable_files;

pub use campaign::{Campaign, Report};
pub use change::Change;
pub use exceptions::{is_stricter_in_verify, is_stricter_on_purpose};
