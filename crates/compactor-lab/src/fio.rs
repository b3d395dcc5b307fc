//! Device and kernel by themselves, measured with `fio`.
//!
//! The profiles of `fio-profiles/` model a foreground load during a compaction in each I/O mode, and streams
//! that have the device to themselves: the ceilings. They are part of this crate; `fio` is not.

use serde::{Deserialize, Serialize};

use crate::outcome::End;

mod document;
mod profile;
mod run;

pub use profile::Profile;
pub use run::{run, version};

/// Options of a measurement with fio.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FioOptions {
    /// Profiles, in the order in which they run.
    pub profiles: Vec<Profile>,
    /// Repeats of all of them.
    pub repeats: u32,
    /// The file that the foreground load reads, bytes.
    pub hot_bytes: u64,
    /// The files that the compaction reads and writes, bytes each.
    pub input_bytes: u64,
    /// Bytes per second that the compaction reads, and writes.
    pub rate_bytes_per_s: u64,
    /// Reads per second of each of the foreground load's 8 threads.
    pub reads_per_thread: u32,
    /// Seconds of each profile.
    pub runtime_s: u32,
}

/// Outcome of a measurement with fio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FioOutcome {
    /// Version, as `fio --version` prints it.
    pub fio_version: String,
    /// Directory of the files.
    pub directory: String,
    /// Options that were given.
    pub options: FioOptions,
    /// Whether all runs took place.
    pub end: End,
    /// Runs in the order in which they took place.
    pub runs: Vec<FioRun>,
}

/// One run of a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FioRun {
    /// The profile.
    pub profile: Profile,
    /// Repeat, from 0.
    pub repeat: u32,
    /// Its jobs; none if it failed.
    pub jobs: Vec<FioJob>,
    /// Reason of a failure, in the words of fio.
    pub failure: Option<String>,
}

/// One job of a run: all reads, or all writes, of some threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FioJob {
    /// Name in the profile, such as `foreground`.
    pub name: String,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Requests per second.
    pub requests_per_s: f64,
    /// Mean latency from submission to completion, as the others.
    pub mean_ns: f64,
    /// Half of them took at most this.
    pub p50_ns: f64,
    /// 99 percent.
    pub p99_ns: f64,
    /// 99.9 percent.
    pub p999_ns: f64,
    /// The longest.
    pub max_ns: f64,
}
