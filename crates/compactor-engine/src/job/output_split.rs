//! Where one output of a merge ends and the next begins.

use std::num::NonZeroUsize;

use compactor_sstable::partitioner::Partitioner;

use crate::error::{Error, Result};

/// Where one output of a merge ends and the next begins. An output without partitions is omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OutputSplit {
    /// There is one output.
    #[default]
    None,
    /// Length of `Data.db` on disk, bytes, after which the next partition begins another output. It is exceeded by at
    /// most one partition and a chunk (`MaxSSTableSizeWriter`).
    MaxBytes(u64),
    /// Number of outputs, consecutive in ring order and of similar size. Their boundaries depend only on the inputs.
    Count(NonZeroUsize),
    /// Last token of each output except for the last one, ascending (`ShardedCompactionWriter`). Tokens are those of
    /// `Murmur3Partitioner`.
    Tokens(Vec<i64>),
}

impl OutputSplit {
    /// Greatest length of an output on disk, bytes.
    pub fn max_bytes(&self) -> Option<u64> {
        match self {
            OutputSplit::MaxBytes(bytes) => Some(*bytes),
            _ => None,
        }
    }

    /// Number of outputs that the caller requested.
    pub(crate) fn count(&self) -> usize {
        match self {
            OutputSplit::Count(outputs) => outputs.get(),
            _ => 1,
        }
    }

    /// Whether there may be several outputs.
    pub(crate) fn is_divided(&self) -> bool {
        match self {
            OutputSplit::None => false,
            OutputSplit::MaxBytes(_) => true,
            OutputSplit::Count(outputs) => outputs.get() > 1,
            OutputSplit::Tokens(tokens) => !tokens.is_empty(),
        }
    }

    /// # Errors
    /// A size of zero, tokens that do not ascend, or tokens of another partitioner.
    pub(crate) fn check(&self, partitioner: Partitioner) -> Result<()> {
        match self {
            OutputSplit::Tokens(_) if partitioner != Partitioner::Murmur3 => {
                Err(Error::InvalidInput(format!(
                    "outputs are split at tokens of Murmur3Partitioner, the inputs are of {partitioner:?}Partitioner"
                )))
            }
            OutputSplit::MaxBytes(0) => Err(Error::InvalidInput(
                "SSTables of at most 0 bytes: specify a greater size".to_owned(),
            )),
            OutputSplit::Tokens(tokens) if !tokens.is_sorted_by(|a, b| a < b) => Err(
                Error::InvalidInput("the last tokens of the outputs must ascend".to_owned()),
            ),
            _ => Ok(()),
        }
    }
}
