//! Random differential tests against Cassandra, as many as asked.
//!
//! `cargo run --release -p interop --bin interop-random -- --seeds 1..2001 [--mode da] [--jobs N] [--keep DIR] [--minimise]`

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use interop::Mode;
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
    let mut seeds: Vec<Range<u64>> = Vec::new();
    let mut mode = None;
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
                seeds.push(from.parse()?..to.parse()?);
            }
            "--mode" => {
                let value = value()?;
                let known = Mode::of_version(&value);
                mode = Some(known.with_context(|| format!("no server writes {value}"))?);
            }
            // As --keep left it.
            "--plan" => plans.push(serde_json::from_str(&fs::read_to_string(value()?)?)?),
            "--jobs" => campaign.jobs = value()?.parse()?,
            "--keep" => campaign.keep = Some(PathBuf::from(value()?)),
            "--minimise" => campaign.minimise = true,
            _ => bail!(
                "unknown option {argument}: --seeds A..B, --mode VERSION, --plan FILE, --jobs N, --keep DIR, --minimise"
            ),
        }
    }
    plans.extend(
        seeds
            .into_iter()
            .flatten()
            .map(|seed| random::plan_for(seed, mode)),
    );
    ensure!(!plans.is_empty(), "--seeds A..B says which seeds to run");
    ensure!(campaign.jobs > 0, "--jobs takes 1 or more");
    Ok((campaign, plans))
}
