//! Permitted output directories: not where a node would load outputs together with their inputs, nor where other
//! SSTables are.

use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};

pub use compactor_engine::publish::{ExistingOutput, OutputClaim};

use super::files::{FileKey, is_same_directory, real_directory};
use super::{Table, data_files};
use crate::{Error, Result};

/// Refuses an output in the directory of its inputs, under any path of it, or in the table that they
/// are a snapshot of.
///
/// # Errors
/// A refusal that names another directory; a path that is not one of a directory.
pub(super) fn check(output: &Path, table: &Table) -> Result<()> {
    refuse_file(output)?;
    let Ok(output) = output.canonicalize() else {
        return refuse_a_way_back(output);
    };
    for directory in directories(table) {
        if is_same_directory(&directory, &output) {
            return Err(Error::refused(format!(
                "--output {} is where the inputs are: a node would load both. Choose another directory, \
                 and put the output in the place of the inputs with `compactor swap` while the node is stopped",
                output.display()
            )));
        }
        let table = super::table_directory_above(&directory);
        if table.is_some_and(|table| is_same_directory(table, &output)) {
            return Err(Error::refused(format!(
                "--output {} is the table's own directory, and the inputs are a snapshot or backup \
                 of it: a node would load the output together with its inputs. Choose another \
                 directory, and bring the output in with `nodetool import`",
                output.display()
            )));
        }
    }
    if let Some((there, input)) = input_linked_in(&output, &table.sstables) {
        return Err(Error::refused(format!(
            "--output {} holds {}, which is the input {} under another name: a node would load both it \
             and the output. Choose another directory",
            output.display(),
            there.display(),
            input.display()
        )));
    }
    Ok(())
}

/// Refuses a path that is a file, or below one.
///
/// # Errors
/// [`InvalidInput`](crate::ErrorKind::InvalidInput).
pub(crate) fn refuse_file(output: &Path) -> Result<()> {
    let mut ancestors = output.ancestors();
    let found = ancestors.find_map(|path| Some((path, path.metadata().ok()?)));
    match found {
        Some((there, metadata)) if !metadata.is_dir() => Err(Error::invalid(format!(
            "--output {}: {} is not a directory; name a directory, which is created if it does not exist",
            output.display(),
            there.display()
        ))),
        _ => Ok(()),
    }
}

/// Refuses a path with `..` after a directory that does not exist yet: its target is known only when the directory
/// has been created, and it may be the directory of the inputs.
fn refuse_a_way_back(output: &Path) -> Result<()> {
    let missing = output.ancestors().take_while(|ancestor| {
        !ancestor.as_os_str().is_empty() && ancestor.canonicalize().is_err()
    });
    for ancestor in missing {
        if ancestor.components().next_back() == Some(Component::ParentDir) {
            return Err(Error::refused(format!(
                "--output {} goes back up from a directory that does not exist. Name the directory \
                 itself, without `..`",
                output.display()
            )));
        }
    }
    Ok(())
}

/// Where SSTables were named, and where they are: a named one may be a symbolic link.
fn directories(table: &Table) -> BTreeSet<PathBuf> {
    let files = table.sstables.iter().chain(&table.siblings);
    let named = table.directories.iter();
    named
        .filter_map(|directory| directory.canonicalize().ok())
        .chain(files.filter_map(real_directory))
        .collect()
}

/// A `Data.db` of `directory` that is the same file as an input, as hard links and symbolic links are.
fn input_linked_in<'a>(directory: &Path, inputs: &'a [PathBuf]) -> Option<(PathBuf, &'a PathBuf)> {
    let inputs: HashMap<_, _> = inputs
        .iter()
        .filter_map(|input| Some((FileKey::of(input)?, input)))
        .collect();
    data_files(directory).into_iter().find_map(|there| {
        let input = inputs.get(&FileKey::of(&there)?)?;
        Some((there, *input))
    })
}
