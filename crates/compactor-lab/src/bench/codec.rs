//! The codec alone: the inputs' chunks decompressed, and as much compressed as the output has, in
//! memory and on all threads. No merge of these files on these threads can take less.
//!
//! Chunks are taken from all over the inputs, into memory and decompressed once beforehand. Then
//! passes over them are timed. Each thread decompresses into, and compresses into, a buffer of one
//! chunk that it reuses, so that nothing but the codec and its checksums counts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use compactor::process::Usage;
use compactor::{Error, Observer, Result};
use compactor_engine::input::InputSstable;
use compactor_io::{Io, IoOptions, ReadMode};
use compactor_sstable::compression::chunk::{ChunkCompressor, ChunkDecompressor};
use compactor_sstable::compression::info::{CompressionParams, StoredChunk};

use super::{CodecTimes, Request};
use crate::parallel::parallel;
use crate::stats::median;
use crate::watcher::check_cancelled;

/// Uncompressed bytes that are taken together: many chunks, so that compressing can cut them anew.
const PIECE_BYTES: u64 = 1 << 20;
/// Passes are repeated until they have taken this long in total...
const LONG_ENOUGH_S: f64 = 1.5;
/// ...and are this many...
const FEWEST_PASSES: usize = 3;
/// ...but not more than this many.
const MOST_PASSES: usize = 15;

/// Neighbouring chunks of one input.
#[derive(Debug, Default)]
struct Piece {
    /// Chunks, each with its bytes as in the file; none if the input is not compressed.
    chunks: Vec<(StoredChunk, Vec<u8>)>,
    /// Decompressed.
    raw: Vec<u8>,
    /// Index of the input.
    input: usize,
}

/// Times the codec on a sample.
///
/// # Errors
/// Damage, a failed read, or cancellation.
pub(super) fn codec(request: &Request, observer: &mut dyn Observer) -> Result<CodecTimes> {
    let (pieces, decompressors) = read_sample(request, observer)?;
    let sample_bytes = pieces.iter().map(|piece| piece.raw.len() as u64).sum();
    let params = request.compression.as_ref();
    // Wall-clock and processor seconds of each.
    let (mut decompress, mut compress): (Vec<[f64; 2]>, Vec<[f64; 2]>) = Default::default();
    let begun = Instant::now();
    while compress.len() < FEWEST_PASSES
        || (compress.len() < MOST_PASSES && begun.elapsed().as_secs_f64() < LONG_ENOUGH_S)
    {
        check_cancelled(observer.is_cancelled())?;
        decompress.push(timed(request.threads, &pieces, || {
            decompression(decompressors.clone())
        })?);
        compress.push(match &params {
            None => [0.0; 2],
            Some(params) => timed(request.threads, &pieces, || compression(&params.0))?,
        });
    }
    let medians = |passes: &[[f64; 2]]| {
        [0, 1].map(|at| {
            let numbers: Vec<f64> = passes.iter().map(|pass| pass[at]).collect();
            median(&numbers).unwrap_or(0.0)
        })
    };
    let [decompress_s, decompress_cpu_s] = medians(&decompress);
    let [compress_s, compress_cpu_s] = medians(&compress);
    Ok(CodecTimes {
        sample_bytes,
        passes: u32::try_from(compress.len()).unwrap_or(u32::MAX),
        decompress_s,
        compress_s,
        decompress_cpu_s,
        compress_cpu_s,
    })
}

/// Reads the sample, and decompresses it.
fn read_sample(
    request: &Request,
    observer: &dyn Observer,
) -> Result<(Vec<Piece>, Vec<Option<ChunkDecompressor>>)> {
    let io = Io::new(IoOptions::default())?;
    let inputs = InputSstable::open_all(&io, &request.inputs, ReadMode::Auto, |input| input)
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    let total: u64 = inputs.iter().map(InputSstable::data_len).sum();
    let mut pieces = Vec::new();
    let mut decompressors = Vec::new();
    let mut number = 0;
    for (index, input) in inputs.iter().enumerate() {
        let file = input.open_data(&io)?;
        let info = input.compression_info();
        let mut decompressor = info.map(ChunkDecompressor::for_file).transpose()?;
        // Chunks, or bytes of an input that is not compressed.
        let (count, per_piece) = match info {
            None => (input.data.len(), PIECE_BYTES),
            Some(info) => {
                let chunk_len = u64::from(info.params.chunk_len);
                (info.chunk_count() as u64, (PIECE_BYTES / chunk_len).max(1))
            }
        };
        for start in (0..count).step_by(per_piece as usize) {
            number += 1;
            if !is_sampled(number, request.sample_bytes, total) {
                continue;
            }
            check_cancelled(observer.is_cancelled())?;
            let end = count.min(start + per_piece);
            let mut piece = Piece {
                input: index,
                ..Piece::default()
            };
            if let (Some(info), Some(decompressor)) = (info, &mut decompressor) {
                for chunk in (start..end).filter_map(|at| info.chunk(at as usize)) {
                    let stored = file.read_at(chunk.offset, chunk.stored_len as usize)?;
                    let start = piece.raw.len();
                    piece.raw.resize(start + chunk.raw_len as usize, 0);
                    decompressor.decompress(&stored, chunk.offset, &mut piece.raw[start..])?;
                    piece.chunks.push((chunk, stored.to_vec()));
                }
            } else {
                piece.raw = file.read_at(start, (end - start) as usize)?.to_vec();
            }
            pieces.push(piece);
        }
        decompressors.push(decompressor);
    }
    if pieces.is_empty() {
        Err(Error::invalid("the inputs have no data to try a codec on"))
    } else {
        Ok((pieces, decompressors))
    }
}

/// Whether piece `number`, from 1, is in a sample of `sample_bytes`, evenly taken of all. The first always is.
fn is_sampled(number: u64, sample_bytes: u64, total_bytes: u64) -> bool {
    if number == 1 || sample_bytes >= total_bytes {
        return true;
    }
    let taken =
        |pieces: u64| u128::from(pieces) * u128::from(sample_bytes) / u128::from(total_bytes);
    taken(number) > taken(number - 1)
}

/// Decompression of pieces, with memory of its own.
fn decompression(
    mut decompressors: Vec<Option<ChunkDecompressor>>,
) -> Result<impl FnMut(&Piece) -> Result<()>> {
    let mut buffer = Vec::new();
    Ok(move |piece: &Piece| {
        let Some(Some(decompressor)) = decompressors.get_mut(piece.input) else {
            return Ok(());
        };
        for (chunk, stored) in &piece.chunks {
            buffer.resize(chunk.raw_len as usize, 0);
            decompressor.decompress(stored, chunk.offset, &mut buffer)?;
        }
        Ok(())
    })
}

/// Compression of pieces, with memory of its own.
fn compression(params: &CompressionParams) -> Result<impl FnMut(&Piece) -> Result<()>> {
    let mut compressor = ChunkCompressor::new(params)?;
    let chunk_len = params.chunk_len as usize;
    let mut buffer = vec![0; compressor.max_stored_len(chunk_len)];
    Ok(move |piece: &Piece| {
        for chunk in piece.raw.chunks(chunk_len.max(1)) {
            compressor.compress_into(chunk, &mut buffer)?;
        }
        Ok(())
    })
}

/// Times one pass over all pieces: seconds, and processor seconds. `new` makes the work of a thread.
fn timed<W: FnMut(&Piece) -> Result<()>>(
    threads: usize,
    pieces: &[Piece],
    new: impl Fn() -> Result<W> + Sync,
) -> Result<[f64; 2]> {
    let next = AtomicUsize::new(0);
    let before = Usage::now();
    let started = Instant::now();
    parallel(threads, "the codec", |_| {
        let mut work = new()?;
        while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(piece)?;
        }
        Ok(())
    })?;
    let wall = started.elapsed();
    let cpu = Usage::now().since(&before).cpu;
    Ok([wall, cpu].map(|time| time.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::super::work::tests::request;
    use super::super::{Compression, Work};
    use super::*;
    use compactor::NoObserver;
    use compactor::generate::{Amount, GenerateOptions, Shape, generate};
    use compactor_sstable::compression::codec::Codec;

    #[test]
    fn a_sample_is_taken_from_everywhere() {
        let taken = |pieces: u64, sample: u64| -> Vec<u64> {
            let total = pieces * PIECE_BYTES;
            let is_in = |n: &u64| is_sampled(*n, sample * PIECE_BYTES, total);
            (1..=pieces).filter(is_in).collect()
        };
        assert_eq!(taken(3, 5), [1, 2, 3]);
        assert_eq!(taken(9, 3), [1, 3, 6, 9]);
        assert_eq!(taken(4, 0), [1]);
        let many = taken(10_000, 128);
        assert!((128..=129).contains(&many.len()));
        assert!(many.windows(2).skip(1).all(|w| w[1] - w[0] <= 79));
    }

    #[test]
    fn chunks_are_decompressed_and_compressed_with_every_codec() {
        let temp = tempfile::tempdir().unwrap();
        let codecs = [
            Some(Codec::Lz4),
            Some(Codec::Snappy),
            Some(Codec::Deflate),
            Some(Codec::Zstd { level: 3 }),
            None,
        ];
        for (number, codec) in codecs.into_iter().enumerate() {
            let directory = temp.path().join(number.to_string());
            let mut options = GenerateOptions::new(Shape::KeyValue, directory);
            options.amount = Amount::Bytes(3 << 20);
            options.sstables = 2;
            options.compression = codec.map(|codec| CompressionParams::new(codec, 16 << 10));
            let made = generate(IoOptions::default(), options.clone(), &mut NoObserver).unwrap();
            let mut request = request(temp.path(), Work::Codec);
            request.inputs = made.sstables.iter().map(|s| s.data_path.clone()).collect();
            request.compression = options.compression.clone().map(Compression);
            request.sample_bytes = 2 << 20;
            let times = super::codec(&request, &mut NoObserver).unwrap();
            assert!(
                (2 << 20..=3 << 20).contains(&times.sample_bytes),
                "{times:?}"
            );
            assert!(times.passes >= FEWEST_PASSES as u32);
            assert!(times.decompress_s > 0.0 && times.decompress_cpu_s > 0.0);
            assert_eq!(times.compress_s > 0.0, codec.is_some());
            // A larger sample than there is data is all of it.
            request.sample_bytes = 1 << 30;
            let times = super::codec(&request, &mut NoObserver).unwrap();
            assert_eq!(
                times.sample_bytes,
                made.sstables
                    .iter()
                    .map(|s| s.uncompressed_bytes)
                    .sum::<u64>()
            );
        }
    }

    #[test]
    fn damage_is_no_result() {
        let temp = tempfile::tempdir().unwrap();
        let mut options = GenerateOptions::new(Shape::KeyValue, temp.path());
        options.amount = Amount::Bytes(1 << 20);
        options.sstables = 1;
        let made = generate(IoOptions::default(), options, &mut NoObserver).unwrap();
        let path = &made.sstables[0].data_path;
        let mut bytes = std::fs::read(path).unwrap();
        bytes[100] ^= 1;
        std::fs::write(path, bytes).unwrap();
        let mut request = request(temp.path(), Work::Codec);
        request.inputs = vec![path.clone()];
        let error = super::codec(&request, &mut NoObserver).unwrap_err();
        assert_eq!(error.kind(), compactor::ErrorKind::Corrupt, "{error}");
    }
}
