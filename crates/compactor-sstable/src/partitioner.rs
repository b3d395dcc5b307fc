//! Partitioners: from partition keys to tokens, which order partitions.
//!
//! Source: `org.apache.cassandra.dht`.

pub mod murmur3;

use md5::{Digest, Md5};

use crate::error::{Error, Result};
use crate::hex::hex;

/// Partitioner of a table, which maps partition keys to tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Partitioner {
    /// `org.apache.cassandra.dht.Murmur3Partitioner`, the default since Cassandra 1.2.
    #[default]
    Murmur3,
    /// `org.apache.cassandra.dht.RandomPartitioner`: the MD5 of the key, the default before.
    Random,
    /// `org.apache.cassandra.dht.ByteOrderedPartitioner`: the key is its own token.
    ByteOrdered,
}

/// Token and hashes of one partition key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyHash {
    /// Partitioner of the token.
    pub partitioner: Partitioner,
    /// Token of Murmur3Partitioner; for others, a number that sorts as the upper half of the token.
    pub token: i64,
    /// Remainder of longer tokens, which sorts after `token`.
    pub token_rest: u64,
    /// First half of the Murmur3 hash, not normalised; used by the Bloom filter for every partitioner.
    pub h1: u64,
    /// Second half of the Murmur3 hash.
    pub h2: u64,
}

/// Position of a partition in the ring. Partitions are ordered by it, then by unsigned key bytes
/// (`DecoratedKey.compareTo`).
pub type Position = (i64, u64);

impl KeyHash {
    /// Position of the partition in the ring.
    #[inline]
    pub fn position(&self) -> Position {
        (self.token, self.token_rest)
    }

    /// Token of RandomPartitioner, from -1 to 2^127, in the form of `BigInteger.toByteArray`: the minimum
    /// number of bytes for the value and its sign. They are the last bytes of the array, from the returned
    /// index on.
    pub fn random_token_bytes(&self) -> ([u8; 17], usize) {
        let upper = u128::from(self.token as u64 ^ (1 << 63));
        let mut bytes = [0; 17];
        let Some(token) = (upper << 64 | u128::from(self.token_rest)).checked_sub(1) else {
            bytes[16] = 0xff;
            return (bytes, 16);
        };
        bytes[1..].copy_from_slice(&token.to_be_bytes());
        // The first of nine bits, aligned to a byte, that differs from the sign.
        let leading = token.leading_zeros() as usize;
        (bytes, leading.div_ceil(8))
    }
}

const PACKAGE: &str = "org.apache.cassandra.dht.";

impl Partitioner {
    /// Returns the partitioner named in Statistics.db.
    ///
    /// # Errors
    /// Unsupported for partitioners of a node's local tables, and for unknown ones.
    pub fn from_class_name(name: &str) -> Result<Partitioner> {
        match name.strip_prefix(PACKAGE).unwrap_or(name) {
            "Murmur3Partitioner" => Ok(Partitioner::Murmur3),
            "RandomPartitioner" => Ok(Partitioner::Random),
            "ByteOrderedPartitioner" => Ok(Partitioner::ByteOrdered),
            "LocalPartitioner" => Err(Error::unsupported(format!(
                "partitioner {name}: a secondary index or a table of the node's own, which stay on \
                 their node; Cassandra rebuilds an index when it loads SSTables of its table"
            ))),
            "ReversedLongLocalPartitioner" => Err(Error::unsupported(format!(
                "partitioner {name}: the log of cluster metadata that a node of Cassandra 6.0 keeps \
                 (local_metadata_log, distributed_metadata_log), which stays on its node"
            ))),
            _ => Err(Error::unsupported(format!(
                "partitioner {name}; only Murmur3Partitioner, RandomPartitioner and \
                 ByteOrderedPartitioner of {PACKAGE} are"
            ))),
        }
    }

    /// Class name as stored in Statistics.db.
    pub fn class_name(self) -> &'static str {
        match self {
            Partitioner::Murmur3 => "org.apache.cassandra.dht.Murmur3Partitioner",
            Partitioner::Random => "org.apache.cassandra.dht.RandomPartitioner",
            Partitioner::ByteOrdered => "org.apache.cassandra.dht.ByteOrderedPartitioner",
        }
    }

    /// Computes token and hashes of a key.
    #[inline]
    pub fn hash_key(self, key: &[u8]) -> KeyHash {
        let (h1, h2) = murmur3::hash3_x64_128(key);
        let (token, token_rest) = match self {
            Partitioner::Murmur3 => (murmur3::token_of(key, h1), 0),
            other => other.position(key),
        };
        KeyHash {
            partitioner: self,
            token,
            token_rest,
            h1,
            h2,
        }
    }

    /// Computes the ring position of a key.
    pub fn position(self, key: &[u8]) -> Position {
        match self {
            Partitioner::Murmur3 => (self.hash_key(key).token, 0),
            Partitioner::Random => {
                // One is added, so that the minimum, -1, sorts before 0.
                let token = random_token(key).map_or(0, |token| token + 1);
                let upper = (token >> 64) as u64 ^ (1 << 63);
                (upper as i64, token as u64)
            }
            // The token consists of the bytes of the key, which are compared next.
            Partitioner::ByteOrdered => (0, 0),
        }
    }

    /// Token of a key in Murmur3Partitioner; in others the upper half of its
    /// [position](Partitioner::position).
    #[inline]
    pub fn token(self, key: &[u8]) -> i64 {
        self.hash_key(key).token
    }

    /// Token as shown by `nodetool`: a number, or the bytes in hexadecimal digits.
    pub fn token_text(self, key: &[u8]) -> String {
        match self {
            Partitioner::Murmur3 => self.token(key).to_string(),
            Partitioner::Random => {
                random_token(key).map_or_else(|| "-1".to_owned(), |token| token.to_string())
            }
            Partitioner::ByteOrdered => hex(key),
        }
    }
}

/// Absolute value of the MD5 of a key, from 0 to 2^127; `None` for the empty key, whose token is the minimum.
///
/// Source: `RandomPartitioner.getToken`, `RandomPartitioner.hashToBigInteger`.
fn random_token(key: &[u8]) -> Option<u128> {
    if key.is_empty() {
        return None;
    }
    let digest: [u8; 16] = Md5::digest(key).into();
    Some(i128::from_be_bytes(digest).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for partitioner in [
            Partitioner::Murmur3,
            Partitioner::Random,
            Partitioner::ByteOrdered,
        ] {
            let name = partitioner.class_name();
            assert_eq!(Partitioner::from_class_name(name).unwrap(), partitioner);
            let short = name.rsplit('.').next().unwrap();
            assert_eq!(Partitioner::from_class_name(short).unwrap(), partitioner);
        }
        for (name, expected) in [
            (
                "org.apache.cassandra.dht.LocalPartitioner",
                "secondary index",
            ),
            (
                "org.apache.cassandra.dht.ReversedLongLocalPartitioner",
                "cluster metadata",
            ),
            (
                "org.apache.cassandra.dht.OrderPreservingPartitioner",
                "only Murmur3",
            ),
        ] {
            let error = Partitioner::from_class_name(name).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(expected), "{error}");
        }
    }

    /// Digests of the test suite in RFC 1321.
    #[test]
    fn random_tokens_are_absolute_values() {
        let random = Partitioner::Random;
        // 0cc175b9c0f1b6a831c399e269772661
        assert_eq!(
            random.token_text(b"a"),
            0x0cc1_75b9_c0f1_b6a8_31c3_99e2_6977_2661_u128.to_string()
        );
        // 900150983cd24fb0d6963f7d28e17f72, which is negative
        let negative = 0x9001_5098_3cd2_4fb0_d696_3f7d_28e1_7f72_u128;
        assert_eq!(
            random.token_text(b"abc"),
            negative.wrapping_neg().to_string()
        );
        assert_eq!(random.token_text(b""), "-1");
    }

    #[test]
    fn token_bytes_are_as_few_as_hold_the_sign() {
        let bytes = |token: Option<u128>| {
            let position = token.map_or(0, |token| token + 1);
            let hash = KeyHash {
                token: ((position >> 64) as u64 ^ (1 << 63)) as i64,
                token_rest: position as u64,
                ..KeyHash::default()
            };
            let (bytes, start) = hash.random_token_bytes();
            bytes[start..].to_vec()
        };
        assert_eq!(bytes(None), [0xff]);
        assert_eq!(bytes(Some(0)), [0]);
        assert_eq!(bytes(Some(0x7f)), [0x7f]);
        assert_eq!(bytes(Some(0x80)), [0, 0x80]);
        assert_eq!(bytes(Some(0x7fff)), [0x7f, 0xff]);
        assert_eq!(bytes(Some(1 << 120))[..2], [1, 0]);
        assert_eq!(
            bytes(Some((1 << 127) - 1)),
            [vec![0x7f], vec![0xff; 15]].concat()
        );
        assert_eq!(bytes(Some(1 << 127)), [vec![0, 0x80], vec![0; 15]].concat());
    }

    #[test]
    fn positions_sort_like_tokens() {
        let mut keys: Vec<Vec<u8>> = (0..2000_u32).map(|n| n.to_be_bytes().to_vec()).collect();
        keys.push(Vec::new());
        let token = |key: &Vec<u8>| match random_token(key) {
            None => (0, 0),
            Some(token) => (1, token),
        };
        let mut by_token = keys.clone();
        by_token.sort_by_key(token);
        keys.sort_by_key(|key| Partitioner::Random.position(key));
        assert_eq!(keys, by_token);
        for key in &keys {
            let hash = Partitioner::Random.hash_key(key);
            assert_eq!(hash.position(), Partitioner::Random.position(key));
            let murmur3 = Partitioner::Murmur3.hash_key(key);
            assert_eq!((hash.h1, hash.h2), (murmur3.h1, murmur3.h2));
            assert_eq!(Partitioner::ByteOrdered.position(key), (0, 0));
        }
    }
}
