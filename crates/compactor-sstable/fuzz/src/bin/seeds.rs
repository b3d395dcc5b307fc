//! Writes seeds to `corpus/<target>/`: those from the fixtures, handmade ones, and those from every directory
//! given as an argument.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use compactor_sstable_fuzz::seeds::{Seeds, add_directory, add_handmade};

fn main() -> std::io::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seeds = Seeds::new();
    add_handmade(&mut seeds);
    add_directory(&mut seeds, &here.join("../testdata"))?;
    for directory in std::env::args_os().skip(1).map(PathBuf::from) {
        add_directory(&mut seeds, &directory)?;
    }
    for (harness, bytes) in &seeds {
        let directory = here.join("corpus").join(harness);
        fs::create_dir_all(&directory)?;
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        fs::write(
            directory.join(format!("seed-{:016x}", hasher.finish())),
            bytes,
        )?;
    }
    println!("{} seeds", seeds.len());
    Ok(())
}
