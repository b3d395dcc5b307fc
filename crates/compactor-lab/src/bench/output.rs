//! Output of a run, in comparison with the others'.

use std::path::{Path, PathBuf};

use compactor::{Error, Result, table};
use compactor_engine::input::InputSstable;
use compactor_io::{Io, IoOptions, ReadMode, ReadaheadOptions, SequentialReader};
use compactor_sstable::compression::crc32;

use super::{Compression, OutputFacts, Request, Work};
use crate::table::components;
use crate::watcher::check_cancelled;

/// Examines the SSTables in a directory; `None` if there are none.
///
/// # Errors
/// Damage, a failed read, or cancellation.
pub(super) fn examine(
    directory: &Path,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Option<OutputFacts>> {
    let mut data_paths = table::data_files(directory);
    data_paths.sort();
    let io = Io::new(IoOptions::default())?;
    let mut facts: Option<OutputFacts> = None;
    let mut sums = Vec::new();
    for path in &data_paths {
        let sstable = InputSstable::open(&io, path, ReadMode::Auto)?;
        let facts = facts.get_or_insert_with(|| OutputFacts {
            sstables: 0,
            bytes: 0,
            uncompressed_bytes: 0,
            rows: 0,
            compression: sstable
                .compression_info()
                .map(|info| Compression(info.params.clone())),
            crc32: 0,
        });
        facts.sstables += 1;
        facts.bytes += sstable.disk_len();
        facts.uncompressed_bytes += sstable.data_len();
        facts.rows += u64::try_from(sstable.statistics.stats.total_rows).unwrap_or_default();
        let mut files: Vec<PathBuf> = components(std::slice::from_ref(path));
        files.sort();
        for file in files {
            sums.extend(file.file_name().unwrap_or_default().as_encoded_bytes());
            sums.extend(sum_of(&io, &file, is_cancelled)?.to_be_bytes());
        }
    }
    Ok(facts.map(|facts| OutputFacts {
        crc32: crc32(&sums),
        ..facts
    }))
}

/// CRC32 of a file's CRC32s, one per extent, which all have one length.
fn sum_of(io: &Io, path: &Path, is_cancelled: &dyn Fn() -> bool) -> Result<u32> {
    let file = io.open(path, ReadMode::Auto)?;
    let mut reader = SequentialReader::whole(file, ReadaheadOptions::default());
    let mut sums = Vec::new();
    while let Some(extent) = reader.next()? {
        check_cancelled(is_cancelled())?;
        sums.extend(crc32(&extent).to_be_bytes());
    }
    Ok(crc32(&sums))
}

/// Fault of the output of a run, if any is visible: a merge of ours writes the same bytes
/// every time, and so does a compaction, whatever runs at once; a copy the same number of bytes, and others the same number of rows.
///
/// # Errors
/// Damage, a failed read, or cancellation.
pub(super) fn wrong(
    request: &Request,
    is_ours: bool,
    expected: &OutputFacts,
    data_file_bytes: u64,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Option<String>> {
    if request.work == Work::Copy {
        let copied = bytes_in(&request.output)?;
        return Ok((copied != data_file_bytes)
            .then(|| format!("{copied} bytes were copied of {data_file_bytes}")));
    }
    if request.work == Work::Codec {
        return Ok(None);
    }
    let found = examine(&request.output, is_cancelled)?;
    let Some(found) = found else {
        let reason = if request.work == Work::Compact {
            "it left no output: the strategy does not compact so few SSTables"
        } else {
            "it left no output"
        };
        return Ok((is_ours || request.keep_output).then(|| reason.to_owned()));
    };
    if is_ours {
        return Ok((found != *expected).then(|| {
            format!(
                "its output is not that of the first merge: CRC32 {:08x} over {} bytes, not {:08x} over {}",
                found.crc32, found.bytes, expected.crc32, expected.bytes
            )
        }));
    }
    if found.rows != expected.rows {
        let (rows, ours) = (found.rows, expected.rows);
        return Ok(Some(format!("its output has {rows} rows, and ours {ours}")));
    }
    Ok((found.compression != expected.compression).then(|| {
        let compression = describe(found.compression.as_ref());
        format!("its output is compressed otherwise than ours: {compression}")
    }))
}

fn describe(compression: Option<&Compression>) -> String {
    compression.map_or_else(
        || "not at all".to_owned(),
        |Compression(c)| format!("{}, chunks of {} bytes", c.compressor, c.chunk_len),
    )
}

fn bytes_in(directory: &Path) -> Result<u64> {
    let failed = || Error::file("list", directory);
    let mut bytes = 0;
    for entry in compactor_io::read_dir(directory).map_err(failed())? {
        let metadata = entry.and_then(|entry| entry.metadata());
        bytes += metadata.map_err(failed())?.len();
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use compactor::NoObserver;
    use compactor::generate::{Amount, GenerateOptions, Shape, generate};
    use compactor_sstable::compression::codec::Codec;
    use compactor_sstable::compression::info::CompressionParams;

    use super::super::work::tests::request;
    use super::*;

    /// Makes an SSTable and returns its directory.
    fn table(directory: &Path, change: impl Fn(&mut GenerateOptions)) -> PathBuf {
        let mut options = GenerateOptions::new(Shape::KeyValue, directory);
        options.amount = Amount::Bytes(256 << 10);
        options.sstables = 1;
        change(&mut options);
        generate(IoOptions::default(), options, &mut NoObserver)
            .unwrap()
            .table_directory
    }

    #[test]
    fn an_output_that_differs_in_anything_is_reported() {
        let temp = tempfile::tempdir().unwrap();
        let made = |name: &str, change: &dyn Fn(&mut GenerateOptions)| {
            table(&temp.path().join(name), change)
        };
        let first = made("first", &|_| {});
        let go_on = || false;
        let expected = examine(&first, &go_on).unwrap().unwrap();
        assert!(expected.rows > 200 && expected.sstables == 1);
        let mut request = request(temp.path(), Work::Merge);
        let mut verdict = |output: PathBuf, is_ours| {
            request.output = output;
            wrong(&request, is_ours, &expected, 0, &go_on).unwrap()
        };
        assert_eq!(verdict(made("again", &|_| {}), true), None);
        let other = made("other", &|options| options.seed = 2);
        assert!(verdict(other.clone(), true).unwrap().contains("CRC32"));
        // Others may write other bytes, but no other rows.
        assert_eq!(verdict(other, false), None);
        let more = made("more", &|options| options.amount = Amount::Bytes(300 << 10));
        assert!(verdict(more, false).unwrap().contains("rows, and ours"));
        let zstd = CompressionParams::new(Codec::Zstd { level: 3 }, 16 << 10);
        let zstd = made("zstd", &|options| options.compression = Some(zstd.clone()));
        assert!(verdict(zstd, false).unwrap().contains("ZstdCompressor"));
        // One bit, in a component that does not describe the data.
        let toc = components_in(&first, "TOC.txt");
        let mut bytes = std::fs::read(&toc).unwrap();
        bytes.push(b'\n');
        std::fs::write(&toc, bytes).unwrap();
        assert!(verdict(first, true).is_some());
        let empty = temp.path().join("empty");
        std::fs::create_dir(&empty).unwrap();
        assert_eq!(verdict(empty, true).unwrap(), "it left no output");
    }

    fn components_in(directory: &Path, suffix: &str) -> PathBuf {
        let entries = std::fs::read_dir(directory).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        paths
            .find(|path| path.to_string_lossy().ends_with(suffix))
            .unwrap()
    }
}
