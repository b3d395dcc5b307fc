//! MurmurHash2 64, as used by Cassandra for the cardinality estimator.
//!
//! As in the partitioner's hash, bytes of the tail are sign-extended before they are shifted.
//!
//! Source: `MurmurHash.hash2_64`.

use crate::partitioner::murmur3::sign_extended_word;

const M: u64 = 0xc6a4_a793_5bd1_e995;
const R: u32 = 47;

/// The hash with seed 0.
pub(super) fn hash2_64(key: &[u8]) -> u64 {
    let mut hash = M.wrapping_mul(key.len() as u64);
    let (words, tail) = key.as_chunks::<8>();
    for word in words {
        let mut k = u64::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> R;
        hash = (hash ^ k.wrapping_mul(M)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        hash = (hash ^ sign_extended_word(tail)).wrapping_mul(M);
    }
    hash ^= hash >> R;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> R)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_by_definition() {
        for len in 0..24usize {
            let key: Vec<u8> = (0..len)
                .map(|i| (i as u8).wrapping_mul(0x4d) ^ 0x80)
                .collect();
            let mut hash = M.wrapping_mul(len as u64);
            for word in key.chunks(8) {
                let extended = word.iter().enumerate().fold(0u64, |k, (i, &b)| {
                    k ^ (i64::from(b as i8) as u64) << (8 * i)
                });
                if let Ok(word) = <[u8; 8]>::try_from(word) {
                    let k = u64::from_le_bytes(word).wrapping_mul(M);
                    hash = (hash ^ (k ^ (k >> R)).wrapping_mul(M)).wrapping_mul(M);
                } else {
                    hash = (hash ^ extended).wrapping_mul(M);
                }
            }
            hash = (hash ^ (hash >> R)).wrapping_mul(M);
            assert_eq!(hash2_64(&key), hash ^ (hash >> R), "{len}");
        }
    }
}
