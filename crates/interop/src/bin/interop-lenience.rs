//! Changes a given number of SSTables, and reads them with Cassandra and with our readers.
//!
//! `cargo run -p interop --bin interop-lenience -- --seeds 1..171 --jobs 2`

use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Parser;
use interop::lenience::Campaign;
use interop::random::parse_seeds;

/// Change SSTables of random plans, and compare which of them Cassandra's readers and ours accept.
///
/// Each seed is a table with an SSTable that is changed in twelve ways: missing files; bytes appended, cut off, flipped
/// or overwritten, with checksums recomputed or not; files of another SSTable; changed fields.
#[derive(Debug, Parser)]
#[command(after_help = "Example: interop-lenience --seeds 1..171 --jobs 2 --keep /tmp/lenience")]
struct Arguments {
    /// Seeds from A up to, but not including, B.
    #[arg(long, value_name = "A..B", value_parser = parse_seeds)]
    seeds: Range<u64>,
    /// Number of concurrent servers.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    jobs: u8,
    /// Directory to keep the files of contradictions in.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    interop::skip::need_cassandra()?;
    let campaign = Campaign {
        jobs: usize::from(arguments.jobs),
        keep: arguments.keep,
    };
    let seeds: Vec<u64> = arguments.seeds.collect();
    let report = campaign.run(&seeds)?;
    print!("{report}");
    ensure!(
        report.failures.is_empty(),
        "{} contradictions",
        report.failures.len()
    );
    Ok(())
}
