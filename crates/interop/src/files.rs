//! Files of SSTables, each SSTable named by its Data.db.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::version::Version;

/// Path of a component, which need not exist.
#[must_use]
pub fn component(data: &Path, name: &str) -> PathBuf {
    let own = data.file_name().unwrap_or_default().to_string_lossy();
    data.with_file_name(own.replace("Data.db", name))
}

/// Names of the components that exist, such as `Data.db`.
pub fn components(data: &Path) -> Result<Vec<String>> {
    let own = data.file_name().context("a file name")?.to_string_lossy();
    let base = own.strip_suffix("Data.db").context("a Data.db")?;
    let mut names = Vec::new();
    for entry in fs::read_dir(data.parent().context("a directory")?)? {
        let name = entry?.file_name();
        names.extend(name.to_string_lossy().strip_prefix(base).map(str::to_owned));
    }
    Ok(names)
}

/// Copies every component into a directory, which is created if need be; returns the copy's Data.db.
pub fn copy(data: &Path, to: &Path) -> Result<PathBuf> {
    fs::create_dir_all(to)?;
    let copied = to.join(data.file_name().context("a file name")?);
    for name in components(data)? {
        let target = component(&copied, &name);
        ensure!(!target.exists(), "{} is there already", target.display());
        fs::copy(component(data, &name), target)?;
    }
    ensure!(copied.exists(), "{} was not copied", data.display());
    Ok(copied)
}

/// Each Data.db below a directory, in the order of their names; none if there is no directory. Indexes' tables are in
/// directories that begin with a dot, and are left out.
pub fn data_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if !directory.exists() {
        return Ok(found);
    }
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !name.starts_with('.') {
            found.extend(data_files(&path)?);
        } else if name.ends_with("-Data.db") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The version in a file's name.
pub fn version(data: &Path) -> Result<Version> {
    Ok(Descriptor::parse(data)?.descriptor.version)
}

/// Compression of Data.db, if it is compressed.
pub(crate) fn compression(data: &Path, version: Version) -> Result<Option<CompressionInfo>> {
    let file = component(data, "CompressionInfo.db");
    if !file.exists() {
        return Ok(None);
    }
    let length = fs::metadata(data)?.len();
    let info = CompressionInfo::parse(&fs::read(file)?, version, length)?;
    Ok(Some(info))
}
