//! Partitioners: from partition keys to tokens, which order partitions.
//!
//! Source: `org.apache.cassandra.dht`.

pub mod murmur3;

use crate::error::{Error, Result};

/// How a table's partition keys become tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Partitioner {
    /// `org.apache.cassandra.dht.Murmur3Partitioner`, the default since Cassandra 1.2.
    Murmur3,
}

/// Token and hashes of one partition key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash {
    /// Position in the ring; partitions ascend by token, then by unsigned key bytes
    /// (`DecoratedKey.compareTo`).
    pub token: i64,
    /// First half of the Murmur3 hash, as the Bloom filter takes it: not normalised.
    pub h1: u64,
    /// Second half.
    pub h2: u64,
}

impl Partitioner {
    /// The partitioner that Statistics.db names.
    ///
    /// # Errors
    /// Unsupported, for any but Murmur3.
    pub fn from_class_name(name: &str) -> Result<Partitioner> {
        const PACKAGE: &str = "org.apache.cassandra.dht.";
        match name.strip_prefix(PACKAGE).unwrap_or(name) {
            "Murmur3Partitioner" => Ok(Partitioner::Murmur3),
            _ => Err(Error::unsupported(format!(
                "partitioner {name}; only {PACKAGE}Murmur3Partitioner is"
            ))),
        }
    }

    /// The name as Statistics.db has it.
    pub fn class_name(self) -> &'static str {
        match self {
            Partitioner::Murmur3 => "org.apache.cassandra.dht.Murmur3Partitioner",
        }
    }

    /// Token and hashes of a key.
    #[inline]
    pub fn hash_key(self, key: &[u8]) -> KeyHash {
        match self {
            Partitioner::Murmur3 => {
                let (h1, h2) = murmur3::hash3_x64_128(key);
                KeyHash {
                    token: murmur3::token_of(key, h1),
                    h1,
                    h2,
                }
            }
        }
    }

    /// Token of a key.
    #[inline]
    pub fn token(self, key: &[u8]) -> i64 {
        self.hash_key(key).token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let name = "org.apache.cassandra.dht.Murmur3Partitioner";
        assert_eq!(
            Partitioner::from_class_name(name).unwrap().class_name(),
            name
        );
        let error =
            Partitioner::from_class_name("org.apache.cassandra.dht.RandomPartitioner").unwrap_err();
        assert!(error.to_string().contains("RandomPartitioner"), "{error}");
    }
}
