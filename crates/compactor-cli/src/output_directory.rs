//! Where outputs may go: not where a node would load them beside what they were made from.

use std::path::Path;

use compactor::Error;
use compactor::catalog::Catalog;

/// Refuses an output beside its inputs, or in the table that they are a snapshot of.
///
/// # Errors
/// A refusal that says where else it could go.
pub fn check(output: &Path, catalog: &Catalog) -> anyhow::Result<()> {
    let Ok(output) = output.canonicalize() else {
        return Ok(());
    };
    for input in catalog.sstables.iter().chain(&catalog.siblings) {
        let Some(directory) = input
            .canonicalize()
            .ok()
            .and_then(|p| p.parent().map(Path::to_owned))
        else {
            continue;
        };
        if directory == output {
            return Err(Error::refused(format!(
                "--output {} is where inputs lie: a node would load both. Choose another directory, \
                 and put the output in the place of the inputs while the node is stopped",
                output.display()
            ))
            .into());
        }
        if table_directory_above(&directory) == Some(output.as_path()) {
            return Err(Error::refused(format!(
                "--output {} is the table's own directory, and the inputs are a snapshot or backup \
                 of it: a node would load the output beside what it was made from. Choose another \
                 directory, and bring the output in with `nodetool import`",
                output.display()
            ))
            .into());
        }
    }
    Ok(())
}

/// `TABLE` of `TABLE/snapshots/NAME` and `TABLE/backups` (`Directories`).
fn table_directory_above(directory: &Path) -> Option<&Path> {
    let parent = directory.parent()?;
    if directory.ends_with("backups") {
        return Some(parent);
    }
    parent
        .ends_with("snapshots")
        .then(|| parent.parent())
        .flatten()
}
