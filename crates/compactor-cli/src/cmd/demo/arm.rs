//! One of the two merges, from cold inputs.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use compactor::merge::merge;
use compactor::{Error, MergeReport, MergeRequest, Observer, Scope};
use compactor_io::{ReadMode, WriteMode, drop_clean_pages};
use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;

/// Merges `inputs` after dropping them from the page cache.
pub fn run(
    inputs: &[PathBuf],
    output: &Path,
    read_mode: ReadMode,
    write_mode: WriteMode,
    observer: &mut dyn Observer,
) -> anyhow::Result<MergeReport> {
    for input in inputs {
        for path in components(input)? {
            drop_clean_pages(&path).map_err(Error::from)?;
        }
    }
    let mut request = MergeRequest::new(inputs.to_vec(), output);
    request.scope = Scope::Complete;
    request.read_mode = read_mode;
    request.write_mode = write_mode;
    forget_peak_memory();
    Ok(merge(request, observer)?)
}

/// Whether all components of two SSTables are the same, byte for byte.
pub fn same_components(a: &Path, b: &Path) -> anyhow::Result<bool> {
    let (a, b) = (components(a)?, components(b)?);
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.iter().zip(&b) {
        if a.file_name() != b.file_name() || !same_bytes(a, b)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn components(data_path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let file =
        Descriptor::parse(data_path).map_err(|e| Error::from(compactor_sstable::Error::from(e)))?;
    let paths = Component::ALL.iter().map(|c| file.descriptor.path(*c));
    Ok(paths.filter(|path| path.exists()).collect())
}

fn same_bytes(a: &Path, b: &Path) -> anyhow::Result<bool> {
    const PIECE: u64 = 1 << 20;
    let mut files = [File::open(a)?, File::open(b)?];
    let mut pieces = [Vec::new(), Vec::new()];
    loop {
        for (file, piece) in files.iter_mut().zip(&mut pieces) {
            piece.clear();
            file.take(PIECE).read_to_end(piece)?;
        }
        if pieces[0] != pieces[1] {
            return Ok(false);
        }
        if pieces[0].is_empty() {
            return Ok(true);
        }
    }
}

/// Makes the kernel count the process's peak memory anew, so that each merge has its own. Where it
/// refuses, the second merge shows the peak of both.
fn forget_peak_memory() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_compared_to_the_last() {
        let temp = tempfile::TempDir::new().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = temp.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let long = vec![7; (1 << 20) + 5];
        let a = file("a", &long);
        let mut other = long.clone();
        assert!(same_bytes(&a, &file("b", &other)).unwrap());
        other.push(7);
        assert!(!same_bytes(&a, &file("c", &other)).unwrap());
        other = long.clone();
        other[1 << 20] = 8;
        assert!(!same_bytes(&a, &file("d", &other)).unwrap());
    }
}
