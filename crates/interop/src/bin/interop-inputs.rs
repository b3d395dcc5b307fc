//! Writes the scenarios' inputs, Cassandra's compaction of them, and the dumps of both to a directory.
//!
//! `cargo run -p interop --bin interop-inputs -- --mode pa --out DIR`

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Parser;
use interop::cases::{self, Case};
use interop::old::OldCassandra;
use interop::scenarios::{self, Scenario};
use interop::{Cassandra, Mode, Options};
use serde_json::json;

/// Writes the scenarios' inputs, Cassandra's compaction of them, and the dumps of both.
#[derive(Debug, Parser)]
struct Arguments {
    /// Version that the server writes, such as pa; every one of 6.0 if none is named.
    #[arg(long = "mode", value_name = "VERSION")]
    modes: Vec<Mode>,
    /// Old release, such as 4.1.10, that writes the inputs; nothing else is written then.
    #[arg(long)]
    release: Option<String>,
    /// Output directory.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Only scenarios whose names match this pattern.
    #[arg(long = "scenario", value_name = "PATTERN")]
    scenarios: Vec<String>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    interop::skip::need_cassandra()?;
    if let Some(release) = &arguments.release {
        return by_old_release(release, &arguments);
    }
    let mut failures = 0;
    let modes = match &arguments.modes[..] {
        [] => &Mode::ALL,
        modes => modes,
    };
    for mode in modes {
        let mut cassandra = Cassandra::start(*mode, &Options::default())?;
        println!("Cassandra {} writing {mode}", cassandra.release());
        for scenario in scenarios::all() {
            if !arguments.wants(&scenario) || !scenario.modes.contains(mode) {
                continue;
            }
            let place = arguments.out.join(mode.version()).join(&scenario.name);
            match write(&mut cassandra, &scenario, &place) {
                Ok(()) => println!("{mode}/{}", scenario.name),
                Err(error) => {
                    failures += 1;
                    eprintln!("FAILED {mode}/{}: {error:#}", scenario.name);
                }
            }
        }
    }
    if failures > 0 {
        bail!("{failures} scenarios failed");
    }
    Ok(())
}

/// Writes the inputs with an old release. A scenario that it cannot write is skipped, with the reason printed.
fn by_old_release(release: &str, arguments: &Arguments) -> Result<()> {
    let mut writer = OldCassandra::start(release)?.context("the release is not available")?;
    for scenario in scenarios::all() {
        if !arguments.wants(&scenario) {
            continue;
        }
        let place = arguments.out.join(release).join(&scenario.name);
        if place.exists() {
            fs::remove_dir_all(&place)?;
        }
        match cases::write_inputs(&mut writer, &scenario, &place) {
            Ok(inputs) => println!("{release}/{}: {} inputs", scenario.name, inputs.len()),
            Err(error) => println!("{release}/{}: {error:#}", scenario.name),
        }
    }
    Ok(())
}

impl Arguments {
    fn wants(&self, scenario: &Scenario) -> bool {
        let mut patterns = self.scenarios.iter();
        self.scenarios.is_empty() || patterns.any(|p| scenarios::matches(p, &scenario.name))
    }
}

fn write(cassandra: &mut Cassandra, scenario: &Scenario, place: &Path) -> Result<()> {
    if place.exists() {
        fs::remove_dir_all(place)?;
    }
    fs::create_dir_all(place)?;
    let case = Case::prepare(cassandra, scenario, &place.join("inputs"))?;
    for (n, data) in (1..).zip(case.inputs.iter().chain(&case.others)) {
        describe(
            cassandra,
            &case,
            scenario,
            data,
            &place.join("inputs").join(n.to_string()),
        )?;
    }
    let compacted = case.compact(cassandra, &place.join("compacted"))?;
    anyhow::ensure!(
        compacted.outputs.len() <= 1,
        "{} outputs",
        compacted.outputs.len()
    );
    anyhow::ensure!(
        scenario.empty == compacted.outputs.is_empty(),
        "expected empty: {}",
        scenario.empty
    );
    if let Some(data) = compacted.outputs.first() {
        describe(cassandra, &case, scenario, data, &place.join("compacted"))?;
    }
    let relative = |paths: &[PathBuf]| -> Vec<String> {
        paths
            .iter()
            .map(|path| {
                path.strip_prefix(place)
                    .unwrap_or(path)
                    .display()
                    .to_string()
            })
            .collect()
    };
    let meta = json!({
        "scenario": scenario.name,
        "about": scenario.about,
        "mode": cassandra.mode().version(),
        "cassandra": cassandra.release(),
        "now_s": case.now_s,
        "gc_before_s": case.gc_before_s,
        "inputs": relative(&case.inputs),
        "others": relative(&case.others),
        "outputs": relative(&compacted.outputs),
        "schema": scenario.ddl(),
    });
    fs::write(
        place.join("meta.json"),
        serde_json::to_string_pretty(&meta)?,
    )?;
    let statements: Vec<String> = scenario
        .ddl()
        .into_iter()
        .map(|statement| format!("{statement};\n"))
        .collect();
    fs::write(place.join("schema.cql"), statements.concat())?;
    Ok(())
}

/// `<prefix>.rows.jsonl`, `<prefix>.sstabledump.jsonl`, `<prefix>.metadata.json` next to the SSTable's directory.
fn describe(
    cassandra: &mut Cassandra,
    case: &Case,
    scenario: &Scenario,
    data: &Path,
    prefix: &Path,
) -> Result<()> {
    let named = |suffix: &str| PathBuf::from(format!("{}.{suffix}", prefix.display()));
    // Which cells `sstabledump` marks as expired depends on the clock.
    cassandra.set_now(scenario.now_s)?;
    fs::write(named("rows.jsonl"), cassandra.dump(&case.table, data)?)?;
    fs::write(
        named("sstabledump.jsonl"),
        cassandra.sstabledump(&case.table, data)?,
    )?;
    if let Ok(metadata) = cassandra.metadata(&case.table, data) {
        fs::write(
            named("metadata.json"),
            serde_json::to_string_pretty(&metadata)?,
        )?;
    }
    Ok(())
}
