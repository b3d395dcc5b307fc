//! A given number of random differential tests against Cassandra.
//!
//! `cargo run --release -p interop --bin interop-random -- --seeds 1..2001 --jobs 2`

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Parser;
use interop::Mode;
use interop::random::{self, Campaign, Plan, parse_seeds};

/// Run random plans through Cassandra's compaction and our merge.
#[derive(Debug, Parser)]
struct Arguments {
    /// Seeds of plans, from A up to, but not including, B.
    #[arg(long, value_name = "A..B", value_parser = parse_seeds, required_unless_present = "plans")]
    seeds: Vec<Range<u64>>,
    /// Version of the outputs, such as da; each seed's own choice if none is named.
    #[arg(long, value_name = "VERSION")]
    mode: Option<Mode>,
    /// A plan file that --keep wrote.
    #[arg(long = "plan", value_name = "FILE")]
    plans: Vec<PathBuf>,
    /// Number of concurrent servers.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    jobs: u8,
    /// Directory to keep plans and files of failures in.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Minimise failing plans.
    #[arg(long)]
    minimise: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let plans = arguments.plans()?;
    interop::skip::need_cassandra()?;
    let campaign = Campaign {
        jobs: usize::from(arguments.jobs),
        keep: arguments.keep,
        minimise: arguments.minimise,
    };
    let report = campaign.run(plans)?;
    println!(
        "{} seeds, {} inputs, {} with an output, {} failed {:?}, {:.1} a second",
        report.done,
        report.inputs,
        report.outputs,
        report.failed.len(),
        report.failed,
        report.done as f64 / report.elapsed.as_secs_f64()
    );
    ensure!(
        report.failed.is_empty(),
        "{} seeds failed",
        report.failed.len()
    );
    Ok(())
}

impl Arguments {
    fn plans(&self) -> Result<Vec<Plan>> {
        let kept = self.plans.iter().map(|path| {
            let text = fs::read_to_string(path)?;
            Ok(serde_json::from_str(&text)?)
        });
        let seeds = self.seeds.iter().cloned().flatten();
        let generated = seeds.map(|seed| Ok(random::plan_for(seed, self.mode)));
        kept.chain(generated).collect()
    }
}
