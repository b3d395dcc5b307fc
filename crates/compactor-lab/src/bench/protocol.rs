//! Requests to a process that runs arms, and its replies: lines of JSON on its stdin and stdout.

use std::io::{BufRead, ErrorKind, Write};
use std::path::PathBuf;

use compactor_sstable::compression::info::CompressionParams;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::arm::IoPair;

/// Kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Merge the inputs.
    Merge,
    /// Compact the inputs by the table's strategy until nothing is left to do.
    Compact,
    /// Copy the inputs' `Data.db`.
    Copy,
    /// Decompress a sample of the inputs, and compress it again, in memory.
    Codec,
}

/// One run of an arm. Paths are absolute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The work.
    pub work: Work,
    /// `Data.db` of each input.
    pub inputs: Vec<PathBuf>,
    /// An empty directory for the output; the caller removes it.
    pub output: PathBuf,
    /// Whether the output is wanted there. Without it a process may do away with it.
    pub keep_output: bool,
    /// A directory for other files on the same disk; removed when all runs are over.
    pub scratch: PathBuf,
    /// Modes of reads and writes; not for external commands, which have their own.
    pub io: IoPair,
    /// Threads that decode and compress.
    pub threads: usize,
    /// Compactions at a time of [`Work::Compact`].
    pub compactors: usize,
    /// Bytes of buffers.
    pub memory_bytes: usize,
    /// Time at which TTL expiry is evaluated, seconds since 1970.
    pub now_s: i64,
    /// Deletions before this time, seconds since 1970, may be purged: the inputs are the whole table.
    pub gc_before_s: i64,
    /// Compression that the output has to have; `None` for none.
    pub compression: Option<Compression>,
    /// Uncompressed bytes that the codec's sample may have.
    pub sample_bytes: u64,
}

/// Compression of an SSTable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Compression(#[serde(with = "CompressionForm")] pub CompressionParams);

/// [`CompressionParams`] in a message.
#[derive(Serialize, Deserialize)]
#[serde(remote = "CompressionParams")]
struct CompressionForm {
    compressor: String,
    options: Vec<(String, String)>,
    #[serde(rename = "chunk_length_bytes")]
    chunk_len: u32,
    max_compressed_len: u32,
}

/// The first line of a process that answers several requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Introduction {
    /// The arm's name in reports.
    pub name: String,
    /// Notes on how it measures.
    pub notes: Vec<String>,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It was done.
    Done(Done),
    /// It could not be done; the reason.
    Failed(String),
}

/// Result of the work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Seconds from opening the inputs to the last sync.
    pub wall_s: f64,
    /// Processor seconds meanwhile, user and system, over all threads.
    pub cpu_s: f64,
    /// Largest resident set of the process, bytes; of the work alone if the process stays.
    pub peak_rss_bytes: u64,
    /// Modes that were really used.
    pub io: Option<IoPair>,
    /// Deviations from the arm's description, as sentences.
    pub otherwise: Vec<String>,
    /// Times of [`Work::Codec`].
    pub codec: Option<CodecTimes>,
}

/// Times of the codec, for a sample of the inputs. Medians over passes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodecTimes {
    /// Uncompressed bytes of the sample.
    pub sample_bytes: u64,
    /// Number of times that it was decompressed and compressed.
    pub passes: u32,
    /// Seconds to check and decompress it, on all threads.
    pub decompress_s: f64,
    /// Seconds to compress it and compute checksums, likewise.
    pub compress_s: f64,
    /// Processor seconds of decompressing.
    pub decompress_cpu_s: f64,
    /// Processor seconds of compressing.
    pub compress_cpu_s: f64,
}

impl CodecTimes {
    /// Time that the codec would take for all of it, by its sample: seconds, and processor seconds. Inputs are
    /// decompressed and outputs compressed, of which there may be less.
    pub(super) fn at_scale(&self, input_bytes: u64, output_bytes: u64) -> (f64, f64) {
        let sample = self.sample_bytes.max(1) as f64;
        let (input, output) = (input_bytes as f64 / sample, output_bytes as f64 / sample);
        (
            self.decompress_s * input + self.compress_s * output,
            self.decompress_cpu_s * input + self.compress_cpu_s * output,
        )
    }
}

/// Longest line that is accepted: requests name all inputs.
const LINE_LIMIT: u64 = 64 << 20;

/// Reads a line; `None` at the end.
///
/// # Errors
/// A failed read, or a line that is something else.
pub fn read_line<T: DeserializeOwned>(from: &mut impl BufRead) -> std::io::Result<Option<T>> {
    let mut line = String::new();
    if std::io::Read::take(from, LINE_LIMIT).read_line(&mut line)? == 0 {
        return Ok(None);
    }
    serde_json::from_str(&line).map(Some).map_err(|e| {
        let shown: String = line.trim_end().chars().take(80).collect();
        std::io::Error::new(ErrorKind::InvalidData, format!("{e}: {shown}"))
    })
}

/// Writes a line.
///
/// # Errors
/// A failed write, or a path that is not UTF-8.
pub fn write_line(to: &mut impl Write, message: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_string(message)?;
    line.push('\n');
    to.write_all(line.as_bytes())?;
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codec_time_is_scaled_by_bytes_read_and_written() {
        let times = CodecTimes {
            sample_bytes: 100,
            passes: 3,
            decompress_s: 0.5,
            compress_s: 2.0,
            decompress_cpu_s: 1.0,
            compress_cpu_s: 4.0,
        };
        assert_eq!(times.at_scale(100, 100), (2.5, 5.0));
        assert_eq!(times.at_scale(1000, 750), (5.0 + 15.0, 10.0 + 30.0));
        assert_eq!(times.at_scale(200, 0), (1.0, 2.0));
    }
}
