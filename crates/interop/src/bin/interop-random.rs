//! Random differential tests against Cassandra, as many as asked.
//!
//! `cargo run --release -p interop --bin interop-random -- --seeds 1..2001 [--jobs N] [--keep DIR] [--minimise]`

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use interop::random::{self, Campaign, Plan};

fn main() -> Result<()> {
    let (campaign, plans) = parse()?;
    if interop::skip::without_cassandra() {
        return Ok(());
    }
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

fn parse() -> Result<(Campaign, Vec<Plan>)> {
    let mut campaign = Campaign {
        jobs: 1,
        keep: None,
        minimise: false,
    };
    let mut plans = Vec::new();
    let mut rest = std::env::args().skip(1);
    while let Some(argument) = rest.next() {
        let mut value = || {
            rest.next()
                .with_context(|| format!("{argument} needs a value"))
        };
        match argument.as_str() {
            "--seeds" => {
                let value = value()?;
                let (from, to) = value
                    .split_once("..")
                    .with_context(|| format!("--seeds takes A..B, found {value}"))?;
                let seeds: Range<u64> = from.parse()?..to.parse()?;
                plans.extend(seeds.map(random::plan));
            }
            // As --keep left it.
            "--plan" => plans.push(serde_json::from_str(&fs::read_to_string(value()?)?)?),
            "--jobs" => campaign.jobs = value()?.parse()?,
            "--keep" => campaign.keep = Some(PathBuf::from(value()?)),
            "--minimise" => campaign.minimise = true,
            _ => bail!(
                "unknown option {argument}: --seeds A..B, --plan FILE, --jobs N, --keep DIR, --minimise"
            ),
        }
    }
    ensure!(!plans.is_empty(), "--seeds A..B says which seeds to run");
    ensure!(campaign.jobs > 0, "--jobs takes 1 or more");
    Ok((campaign, plans))
}
