//! A given number of changed SSTables, read by Cassandra and by us.
//!
//! `cargo run -p interop --bin interop-lenience -- --seeds 1..171 --jobs 2`

use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Parser;
use interop::lenience::Campaign;
use interop::random::parse_seeds;

/// Change SSTables of random plans, and compare what Cassandra's readers and ours take.
///
/// Each seed is a table with an SSTable that is changed in twelve ways: files missing, bytes appended, cut off, flipped or
/// overwritten, with checksums mended or not, files of another SSTable, other fields.
#[derive(Debug, Parser)]
#[command(after_help = "Example: interop-lenience --seeds 1..171 --jobs 2 --keep /tmp/lenience")]
struct Arguments {
    /// Seeds, without B.
    #[arg(long, value_name = "A..B", value_parser = parse_seeds)]
    seeds: Range<u64>,
    /// Servers at once.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    jobs: u8,
    /// Directory for the files of contradictions.
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
