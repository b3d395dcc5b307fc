//! Tests of the oracle: a flipped bit anywhere in a component must be found, both by the verifier and by the byte
//! comparison with the intact SSTable.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use compactor_testkit::campaign;
use interop::cases::Case;
use interop::parity;
use interop::scenarios::{self, Scenario};
use interop::{Cassandra, Mode, files};

use crate::support::last_use_of_server;

/// Components in which any damage must be detected.
const COMPONENTS: [&str; 10] = [
    "Data.db",
    "Index.db",
    "Partitions.db",
    "Rows.db",
    "Filter.db",
    "Statistics.db",
    "CompressionInfo.db",
    "CRC.db",
    "Summary.db",
    "Digest.crc32",
];

/// Positions flipped per component; in a small component, every position.
const POSITIONS: usize = 24;

#[test]
fn pa() {
    flip(
        Mode::Pa,
        &["single_input", "wide_uncompressed", "many_small"],
    );
}

#[test]
fn ea() {
    if !campaign::is_full() {
        return;
    }
    flip(Mode::Ea, &["wide_uncompressed", "many_small"]);
}

#[test]
fn nb() {
    if !campaign::is_full() {
        return;
    }
    flip(Mode::Nb, &["range_touching", "wide_static"]);
}

fn flip(mode: Mode, names: &[&str]) {
    let Some(mut cassandra) = last_use_of_server(mode) else {
        return;
    };
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut cases = Vec::new();
    // All cases are prepared before the first damage: a server that has read damaged files may no longer apply schema
    // changes.
    for scenario in scenarios::all() {
        if names.contains(&scenario.name.as_str()) {
            let place = place.path().join(&scenario.name);
            let case = compacted(&mut cassandra, &scenario, &place).expect("an SSTable");
            cases.push((scenario.name, case));
        }
    }
    assert_eq!(cases.len(), names.len(), "scenarios of these names");
    let mut survived = Vec::new();
    for (name, (case, data)) in &cases {
        for component in COMPONENTS {
            survived.extend(
                component_flips(&mut cassandra, case, data, component)
                    .unwrap_or_else(|error| panic!("{name} {component}: {error:#}"))
                    .into_iter()
                    .map(|line| format!("{mode}/{name} {component}: {line}")),
            );
        }
    }
    assert!(
        survived.is_empty(),
        "damage not detected:\n{}",
        survived.join("\n")
    );
}

/// Compacts a scenario with Cassandra; its verifier must find nothing in the output.
fn compacted(
    cassandra: &mut Cassandra,
    scenario: &Scenario,
    place: &Path,
) -> Result<(Case, PathBuf)> {
    let case = Case::prepare(cassandra, scenario, &place.join("inputs"))?;
    let mut compacted = case.compact(cassandra, &place.join("out"))?;
    let data = compacted.outputs.pop().context("no output")?;
    let findings = cassandra.verify(&case.table, &data)?;
    ensure!(findings.is_empty(), "before damage: {findings:?}");
    Ok((case, data))
}

fn component_flips(
    cassandra: &mut Cassandra,
    case: &Case,
    data: &Path,
    component: &str,
) -> Result<Vec<String>> {
    let original = files::component(data, component);
    if !original.exists() {
        return Ok(Vec::new());
    }
    let bytes = fs::read(&original)?;
    if bytes.is_empty() && component == "Rows.db" {
        return Ok(Vec::new());
    }
    ensure!(!bytes.is_empty(), "{} is empty", original.display());
    let copy = tempfile::tempdir()?;
    let copied = files::copy(data, copy.path())?;
    let victim = files::component(&copied, component);
    // These may differ where Data.db is compressed.
    let may_differ = ["Statistics.db", "CompressionInfo.db", "Digest.crc32"].contains(&component)
        && files::component(data, "CompressionInfo.db").exists();
    let count = bytes.len().min(POSITIONS.div_ceil(campaign::stride()));
    let mut survived = Vec::new();
    for n in 0..count {
        let at = if count < 2 {
            0
        } else {
            n * (bytes.len() - 1) / (count - 1)
        };
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (n % 8);
        fs::write(&victim, &damaged)?;
        // A failed request has detected it too.
        if let Ok(findings) = cassandra.verify(&case.table, &copied)
            && findings.is_empty()
        {
            survived.push(format!("bit {} of byte {at} of {}", n % 8, bytes.len()));
        }
        if !may_differ
            && let Ok(differences) = parity::differences(cassandra, &case.table, data, &copied, &[])
            && differences.is_empty()
        {
            let bit = n % 8;
            survived.push(format!("parity: bit {bit} of byte {at} of {}", bytes.len()));
        }
    }
    fs::write(&victim, &bytes)?;
    let findings = cassandra.verify(&case.table, &copied)?;
    let differences = parity::differences(cassandra, &case.table, data, &copied, &[])?;
    ensure!(
        differences.is_empty(),
        "the restored copy differs: {differences:?}"
    );
    ensure!(
        findings.is_empty(),
        "the restored copy has findings: {findings:?}"
    );
    Ok(survived)
}
