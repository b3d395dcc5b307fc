//! Directory of a generated table, which is new or empty, and its `schema.cql`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use compactor_engine::publish::{ExistingOutput, OutputClaim, Replaceable, is_run_directory};
use compactor_io::remove_if_exists;

use crate::run_record::read_small;
use crate::{Error, Result};

const SCHEMA: &str = "schema.cql";

/// Claims the directory of a table with the schema `cql`, and removes what killed runs left there.
///
/// # Errors
/// As [`OutputClaim::take`], or the directory has files.
pub(super) fn claim(directory: &Path, cql: &str) -> Result<Arc<OutputClaim>> {
    let claim = OutputClaim::take(directory, ExistingOutput::Keep, Replaceable::default())?;
    let list = || Error::file("list", directory);
    for entry in compactor_io::read_dir(directory).map_err(list())? {
        let name = entry.map_err(list())?.file_name();
        let is_run = name.to_str().is_some_and(is_run_directory);
        let is_ours = is_run || name == SCHEMA && is_left(&directory.join(SCHEMA), cql);
        if !is_ours {
            return Err(Error::invalid(format!(
                "{}: already exists and is not empty; choose another output directory, table or seed, or \
                 remove it",
                directory.display()
            )));
        }
    }
    Ok(claim)
}

/// Whether a run of this schema was killed after it had written the file, or while it wrote it.
fn is_left(path: &Path, cql: &str) -> bool {
    let left = read_small(path, cql.len() as u64);
    left.is_ok_and(|left| left.is_none_or(|left| cql.as_bytes().starts_with(&left)))
}

/// `schema.cql` of SSTables that are not published yet. Removed on drop.
#[derive(Debug)]
pub(super) struct Schema(Option<PathBuf>);

impl Schema {
    pub(super) fn write(directory: &Path, cql: &str) -> Result<Schema> {
        let path = directory.join(SCHEMA);
        let schema = Schema(Some(path.clone()));
        fs::write(&path, cql).map_err(Error::file("write", path))?;
        Ok(schema)
    }

    /// The SSTables are there.
    pub(super) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = remove_if_exists(path);
        }
    }
}
