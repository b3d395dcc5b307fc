//! Publication of outputs: the claim on a directory, the hidden directories of runs, transaction logs and renames.

pub(crate) mod directory_lock;
pub(crate) mod file_identity;
pub(crate) mod inputs_at_open;
pub(crate) mod node_directory;
pub(crate) mod output_claim;
pub(crate) mod output_id;
pub(crate) mod publication;
pub(crate) mod quiet_directories;
pub(crate) mod replaceable;
pub(crate) mod replacement;
pub(crate) mod run_directory;
pub(crate) mod staging;
pub(crate) mod stale_runs;
pub(crate) mod transaction_file;

pub use directory_lock::lock_directory;
pub use file_identity::FileIdentity;
pub use inputs_at_open::{InputAtOpen, InputsAtOpen};
pub use node_directory::{refuse_next_to_table, with_real_ancestor};
pub use output_claim::{ExistingOutput, OutputClaim};
pub use output_id::{OutputIds, new_time_uuid, new_uuid_id, next_id};
pub use publication::{is_harmless_log, refuse_unfinished};
pub use quiet_directories::QuietDirectories;
pub use replaceable::Replaceable;
pub use replacement::{RUN_RECORD, TMP_SUFFIX};
pub use run_directory::is_run_directory;
pub use staging::{StagedOutput, Staging, publish_all};
pub use transaction_file::TransactionFile;
