//! Benchmark of a merge in comparison with a plain copy of the same files, the codec alone, and Cassandra, if a command
//! for it is given.
//!
//! Each arm runs in a process of its own, so that processor time and peak memory are those of the arm alone.
//! A process is given a [`Request`] as a line of JSON and answers with a [`Reply`]: our own arms are
//! [`serve`]d by a child that ends with it, any other is a command that answers one request after
//! the other. [`run()`] runs them in random order, and a report needs only its [`BenchOutcome`].

mod codec;
mod options;
mod outcome;
mod output;
mod process;
mod protocol;
mod run;
mod work;

pub use crate::arm::IoPair;
pub use options::{ArmKind, BenchOptions};
pub use outcome::{ArmOutcome, BenchOutcome, BenchRun, OutputFacts};
pub use protocol::{
    CodecTimes, Compression, Done, Introduction, Reply, Request, Work, read_line, write_line,
};
pub use run::run;
pub use work::serve;
