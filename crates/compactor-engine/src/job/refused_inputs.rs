//! Refusal of inputs that must not be merged with one another.

use std::path::PathBuf;

use compactor_sstable::partitioner::Partitioner;

use crate::error::{Error, Result};
use crate::input::repair_group::RepairGroup;
use crate::input::sstable::InputSstable;
use crate::job::overlapping::OutsideSstables;

/// Refuses an SSTable that is named twice, by whatever path.
///
/// # Errors
/// The refusal; a file that cannot be looked up.
pub fn refuse_duplicates(inputs: &[PathBuf]) -> Result<()> {
    let mut seen: Vec<PathBuf> = Vec::with_capacity(inputs.len());
    for path in inputs {
        seen.push(path.canonicalize().map_err(Error::file("open", path))?);
    }
    seen.sort();
    match seen.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::InvalidInput(format!(
            "{} is named twice; name each SSTable once",
            pair[0].display()
        ))),
        None => Ok(()),
    }
}

pub(crate) fn refuse_mixed_repair(inputs: &[InputSstable]) -> Result<()> {
    let group = |i: &InputSstable| RepairGroup::of(&i.statistics.stats);
    let first = group(&inputs[0]);
    match inputs.iter().find(|i| group(i) != first) {
        None => Ok(()),
        Some(other) => Err(Error::Refused(format!(
            "{} is {first} but {} is {}: merged into one SSTable they would lose their repair \
             state. Merge each repair state separately",
            inputs[0].data_path().display(),
            other.data_path().display(),
            group(other)
        ))),
    }
}

/// Returns the partitioner of all SSTables. Different partitioners order partitions differently.
pub(crate) fn one_partitioner(
    inputs: &[InputSstable],
    outside: &OutsideSstables,
) -> Result<Partitioner> {
    let first = inputs[0].partitioner;
    let others = inputs.iter().map(|i| i.partitioner);
    let mut others = others.chain(outside.sstables().iter().map(|s| s.partitioner));
    match others.find(|other| *other != first) {
        None => Ok(first),
        Some(other) => Err(Error::InvalidInput(format!(
            "SSTables of one table have one partitioner: {} has {}, but another has {}",
            inputs[0].data_path().display(),
            first.class_name(),
            other.class_name()
        ))),
    }
}
