//! The rows of a table, written once for each variant.

use std::path::{Path, PathBuf};
use std::time::Instant;

use compactor::{Error, ExistingOutput, InputCheck, MergeRequest, OutputCompression, Result};
use compactor_engine::publish::OutputIds;
use compactor_io::IoOptions;
use compactor_sstable::descriptor::Descriptor;

use super::outcome::VariantRecord;
use super::variant::Variant;
use crate::hot_set::HotSet;
use crate::point_read::PointReader;
use crate::table::{GENERATING, Table};
use crate::watcher::{Watcher, watched};

/// A variant on disk.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) table: Table,
    pub(crate) record: VariantRecord,
}

/// Writes the SSTables of a table to a directory, each alone and with its id, as `nodetool
/// upgradesstables` does: nothing is merged, nothing purged. Returns them, and the number of their rows and
/// partitions. `work`, of a number of bytes, is what progress is reported of.
fn rewrite(
    source: &Table,
    compression: &OutputCompression,
    output: &Path,
    (work, bytes): (&str, u64),
    watcher: &dyn Watcher,
) -> Result<(Table, u64, u64)> {
    std::fs::create_dir(output).map_err(Error::file("create directory", output))?;
    let mut data_paths: Vec<PathBuf> = Vec::new();
    let (mut rows, mut partitions, mut done) = (0, 0, 0);
    for path in &source.data_paths {
        let parsed = Descriptor::parse(path);
        let file = parsed.map_err(|e| Error::invalid(format!("{}: {e}", path.display())))?;
        let mut request = MergeRequest::new(vec![path.clone()], output);
        request.ids = Some(OutputIds::starting_at(file.descriptor.id));
        // They are of one table, and belong together.
        request.existing_output = ExistingOutput::Keep;
        request.compression = compression.clone();
        let job = compactor::merge::open_merge(IoOptions::default(), request)?;
        let mut observer = watched(watcher, work, (done, bytes));
        let report = compactor::merge::run_merge(job, InputCheck::DataOnly, &mut observer)?;
        done += report.input_uncompressed_bytes;
        rows += report.rows_written;
        partitions += report.partitions_written;
        data_paths.extend(report.outputs.into_iter().map(|o| o.data_path));
    }
    let table = Table::open(source.record.shape.clone(), data_paths)?;
    Ok((table, rows, partitions))
}

/// A copy of a table in `directory`, written by what writes the variants, so that uncompressed it has
/// the same bytes as they: rows are stored as differences from the least timestamp, which others may
/// have chosen otherwise. Progress is that of generating `bytes`.
///
/// # Errors
/// Damage, a failed read or write, or cancellation.
pub(crate) fn copy(
    table: &Table,
    bytes: u64,
    directory: &Path,
    watcher: &dyn Watcher,
) -> Result<Table> {
    let (output, work) = (directory.join("source"), (GENERATING, bytes));
    let compression = OutputCompression::AsNewestInput;
    let (copy, ..) = rewrite(table, &compression, &output, work, watcher)?;
    Ok(copy)
}

/// Writes the SSTables of a [`copy`] as `variant` below `directory`.
///
/// # Errors
/// Damage, a failed read or write, or cancellation.
pub(crate) fn write(
    source: &Table,
    variant: Variant,
    hot: &HotSet,
    (page_bytes, room_bytes): (u64, u64),
    directory: &Path,
    watcher: &dyn Watcher,
) -> Result<Written> {
    let started = Instant::now();
    let output = directory.join(variant.to_string().replace(' ', "-"));
    let (compression, work) = (variant.compression(), format!("writing {variant}"));
    let work = (work.as_str(), source.record.uncompressed_bytes);
    let (table, rows, partitions) = rewrite(source, &compression, &output, work, watcher)?;
    let (stored, uncompressed) = (table.data_file_bytes(), table.record.uncompressed_bytes);
    if uncompressed != source.record.uncompressed_bytes {
        return Err(Error::Internal(format!(
            "{variant}: {uncompressed} uncompressed bytes were made of {}",
            source.record.uncompressed_bytes
        )));
    }
    let written_in_s = started.elapsed().as_secs_f64();
    let readers = PointReader::open_all(&table.data_paths)?;
    let hot_bytes = hot_bytes(&readers, hot, page_bytes);
    let chunks: u64 = readers.iter().filter_map(|r| r.data.chunk_count()).sum();
    let offsets = 8 * chunks;
    Ok(Written {
        record: VariantRecord {
            variant,
            data_file_bytes: stored,
            uncompressed_bytes: uncompressed,
            ratio: stored as f64 / uncompressed.max(1) as f64,
            chunks,
            chunk_offset_bytes: offsets,
            chunk_offset_bytes_per_gib: offsets as f64 * f64::from(1 << 30)
                / uncompressed.max(1) as f64,
            partitions,
            rows,
            hot_bytes,
            pressure: hot_bytes as f64 / room_bytes as f64,
            written_in_s,
        },
        table,
    })
}

/// Bytes of the pages that reads of the hot rows touch. `hot` was drawn from the source, whose uncompressed content is
/// that of the variant.
fn hot_bytes(readers: &[PointReader], hot: &HotSet, page_bytes: u64) -> u64 {
    let mut count = 0;
    for (reader, spans) in readers.iter().zip(&hot.spans) {
        let mut ranges: Vec<_> = spans.iter().map(|span| reader.data.stored(span)).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        // Pages before this are counted.
        let mut next = 0;
        for range in ranges {
            let first = (range.start / page_bytes).max(next);
            let end = range.end.div_ceil(page_bytes);
            count += end.saturating_sub(first);
            next = next.max(end);
        }
    }
    count * page_bytes
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use compactor::NoObserver;
    use compactor::generate::Shape;
    use compactor_sstable::Version;

    use super::*;
    use crate::chunk_length::Compressor;
    use crate::data_file::ReadBuffer;
    use crate::options::Data;
    use crate::point_read::{ReadState, RowFound};

    /// All of the uncompressed content.
    fn content(reader: &PointReader) -> Vec<u8> {
        let (data, mut buffer) = (&reader.data, ReadBuffer::default());
        let len = data.data_len;
        data.read_from(0, &mut buffer, |bytes, _| {
            Ok((bytes.len() as u64 >= len).then(|| bytes.to_vec()))
        })
        .unwrap()
    }

    #[test]
    fn variants_have_the_same_rows_in_other_chunks() {
        let (directory, never) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
        for shape in compactor_testkit::campaign::some_of([Shape::KeyValue, Shape::Wide]) {
            let below = directory.path().join(shape.name());
            std::fs::create_dir(&below).unwrap();
            let data = Data::Generated {
                shape,
                version: Version::Oa,
                uncompressed_bytes: Some(3 << 20),
                sstables: 2,
            };
            let generated =
                Table::prepare(&data, (3 << 20, 0), 1, &below, &mut NoObserver).unwrap();
            let source = copy(&generated, 0, &below, &never).unwrap();
            let sources = PointReader::open_all(&source.data_paths).unwrap();
            let hot = HotSet::choose(&sources, 400_000, 1, &never).unwrap();
            let all = Variant::all(Compressor::ALL, &[4096, 16384, 65536]);
            let mut hot_bytes = Vec::new();
            for variant in all {
                let written =
                    write(&source, variant, &hot, (4096, 1 << 30), &below, &never).unwrap();
                let readers = PointReader::open_all(&written.table.data_paths).unwrap();
                for (ours, theirs) in readers.iter().zip(&sources) {
                    assert!(content(ours) == content(theirs), "{variant}");
                }
                let chunk_len = written.table.record.chunk_length_bytes;
                assert_eq!(chunk_len, variant.chunk_length_bytes);
                for row in &hot.rows {
                    let mut found = readers.iter().map(|reader| {
                        let mut state = ReadState::default();
                        reader.find(row, &mut state).unwrap()
                    });
                    assert!(
                        found.any(|f| matches!(f, RowFound::Row { .. })),
                        "{variant}"
                    );
                }
                let record = &written.record;
                let len = record.uncompressed_bytes;
                assert!(record.rows >= record.partitions && record.partitions > 0);
                match variant.chunk_length_bytes {
                    None => assert_eq!((record.chunks, record.ratio), (0, 1.0)),
                    Some(chunk) => {
                        assert!(record.chunks >= len.div_ceil(chunk.into()));
                        assert_eq!(record.chunk_offset_bytes, 8 * record.chunks);
                    }
                }
                let is_compressed =
                    !matches!(variant.compressor, Compressor::Noop | Compressor::None);
                assert_eq!(record.ratio < 0.9, is_compressed, "{variant}");
                hot_bytes.push((variant, record.hot_bytes));
            }
            let of = |name: &str| {
                let found = hot_bytes.iter().find(|(v, _)| v.to_string() == name);
                found.unwrap().1
            };
            assert!(of("lz4 4 KiB") < of("lz4 64 KiB"), "{hot_bytes:?}");
            // In the source's own form it is what reading touched, but for reads that found nothing.
            let (counted, touched) = (of("lz4 16 KiB"), hot.page_count() * 4096);
            assert!(counted <= touched, "{counted} of {touched}");
            let finds_nothing = shape == Shape::Wide;
            assert!(
                finds_nothing || 10 * counted >= 9 * touched,
                "{counted} of {touched}"
            );
        }
    }
}
