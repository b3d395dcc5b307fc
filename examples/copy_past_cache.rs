//! Copies a file bypassing the page cache with `compactor-io` alone, and shows by cachestat that no page of
//! either file stayed; then copies it through the page cache, for comparison.
//!
//! `cargo run -p compactor-examples --example copy_past_cache [-- SOURCE TARGET]`
//!
//! Without arguments it makes a file of 64 MiB on a disk and removes both at the end.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use compactor_examples::directory_on_disk;
use compactor_io::{
    Io, IoOptions, ReadMode, ReadaheadOptions, SequentialReader, WriteMode, WriterOptions,
    drop_clean_pages, residency, sync_directory,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    // Removed when it is dropped, at the end.
    let scratch = directory_on_disk()?;
    let (source, target) = match (arguments.next(), arguments.next()) {
        (Some(source), Some(target)) => (source, target),
        (None, _) => {
            let source = scratch.path().join("source");
            make_file(&source)?;
            (source, scratch.path().join("target"))
        }
        (Some(_), None) => return Err("give SOURCE and TARGET, or nothing".into()),
    };
    if target.exists() {
        return Err(format!("{} exists already", target.display()).into());
    }

    let io = Io::new(IoOptions::default())?;
    for (read, write) in [
        // Direct if the file system supports it, else pages are dropped after the copy.
        (ReadMode::Auto, WriteMode::Auto),
        (ReadMode::Buffered, WriteMode::Buffered),
    ] {
        if target.exists() {
            fs::remove_file(&target)?;
        }
        // Start cold. This evicts the source for everybody: fit for a demonstration only.
        drop_clean_pages(&source)?;
        let (read, write) = copy(&io, &source, &target, read, write)?;
        println!("read {read}, written {write}:");
        for file in [&source, &target] {
            let found = residency(file)?;
            println!("  {found} (by {}): {}", found.method, file.display());
        }
    }
    for fallback in io.fallbacks() {
        println!("{fallback}");
    }
    println!("backend {}", io.backend_used().kind);
    Ok(())
}

/// Copies and returns the modes that were really used.
fn copy(
    io: &Io,
    source: &Path,
    target: &Path,
    read: ReadMode,
    write: WriteMode,
) -> Result<(ReadMode, WriteMode), Box<dyn Error>> {
    let input = io.open(source, read)?;
    let read = input.mode();
    let mut writer = io.create(target, write, WriterOptions::default())?;
    let mut reader = SequentialReader::whole(input, ReadaheadOptions::default());
    while let Some(extent) = reader.next()? {
        writer.write_all(&extent)?;
    }
    let written = writer.finish()?; // complete and durable
    let directory = target
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    sync_directory(directory.unwrap_or(Path::new(".")))?; // and so is its name
    Ok((read, written.mode))
}

fn make_file(path: &Path) -> std::io::Result<()> {
    let mut file = fs::File::create(path)?;
    for number in 0..64u8 {
        file.write_all(&vec![number; 1 << 20])?;
    }
    file.sync_all()
}
