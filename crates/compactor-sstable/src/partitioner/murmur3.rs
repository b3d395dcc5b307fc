//! MurmurHash3 x64 128 as Cassandra computes it: tokens and Bloom filter hashes.
//!
//! Full blocks of 16 bytes are hashed as in the canonical algorithm. In the tail each byte is
//! sign-extended before it is shifted, so that tails with bytes of 0x80 and above hash differently.
//!
//! Source: `MurmurHash.hash3_x64_128`, `Murmur3Partitioner.getToken`.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// Both halves of the hash with seed 0, the one that Cassandra uses.
#[inline]
pub fn hash3_x64_128(key: &[u8]) -> (u64, u64) {
    let mut h1 = 0u64;
    let mut h2 = 0u64;
    let (blocks, tail) = key.as_chunks::<16>();
    for block in blocks {
        let whole = u128::from_le_bytes(*block);
        h1 ^= mix_k1(whole as u64);
        h1 = h1
            .rotate_left(27)
            .wrapping_add(h2)
            .wrapping_mul(5)
            .wrapping_add(0x52dc_e729);
        h2 ^= mix_k2((whole >> 64) as u64);
        h2 = h2
            .rotate_left(31)
            .wrapping_add(h1)
            .wrapping_mul(5)
            .wrapping_add(0x3849_5ab5);
    }
    if let Some((low, high)) = tail.split_first_chunk::<8>() {
        if !high.is_empty() {
            h2 ^= mix_k2(sign_extended_word(high));
        }
        h1 ^= mix_k1(extend_signs(u64::from_le_bytes(*low)));
    } else if !tail.is_empty() {
        h1 ^= mix_k1(sign_extended_word(tail));
    }

    h1 ^= key.len() as u64;
    h2 ^= key.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = fmix(h1);
    h2 = fmix(h2);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2)
}

/// Token of a key whose first hash half is `h1`.
///
/// The minimum number is the ring's own minimum: it is the token of the empty key, and of no other key.
#[inline]
pub fn token_of(key: &[u8], h1: u64) -> i64 {
    if key.is_empty() {
        return i64::MIN;
    }
    match h1 as i64 {
        i64::MIN => i64::MAX,
        token => token,
    }
}

/// Token of a key.
#[inline]
pub fn token(key: &[u8]) -> i64 {
    token_of(key, hash3_x64_128(key).0)
}

#[inline(always)]
fn mix_k1(k1: u64) -> u64 {
    k1.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

#[inline(always)]
fn mix_k2(k2: u64) -> u64 {
    k2.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

#[inline(always)]
fn fmix(mut k: u64) -> u64 {
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

/// XOR of up to 7 bytes, each sign-extended to 64 bits and shifted to its position (little-endian).
#[inline(always)]
pub(crate) fn sign_extended_word(bytes: &[u8]) -> u64 {
    extend_signs(partial_word(bytes))
}

/// Up to 7 bytes as a little-endian word, read with overlapping loads instead of a loop.
#[inline(always)]
fn partial_word(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let low = u64::from(u32::from_le_bytes(*first));
        let high = u64::from(u32::from_le_bytes(*last));
        return low | (high << (8 * (len - 4)));
    }
    match *bytes {
        [] => 0,
        [a] => u64::from(a),
        [a, b] => u64::from(a) | (u64::from(b) << 8),
        [a, b, c, ..] => u64::from(a) | (u64::from(b) << 8) | (u64::from(c) << 16),
    }
}

/// Converts adjacent bytes to the XOR of their sign extensions: each byte whose top bit is set inverts all
/// higher bytes.
#[inline(always)]
fn extend_signs(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let signs = (word >> 7) & ONES;
    // Byte j of the product counts the set signs below j (at most 7, so there is no carry); an odd count
    // inverts.
    let below = signs.wrapping_mul(ONES << 8);
    word ^ (below & ONES).wrapping_mul(0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Definition in the order of Cassandra's source, byte by byte.
    fn naive(key: &[u8]) -> (u64, u64) {
        let (mut h1, mut h2) = (0u64, 0u64);
        let full = key.len() / 16 * 16;
        for block in key[..full].chunks(16) {
            let k1 = u64::from_le_bytes(block[..8].try_into().unwrap());
            let k2 = u64::from_le_bytes(block[8..].try_into().unwrap());
            h1 ^= k1.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
            h1 = h1
                .rotate_left(27)
                .wrapping_add(h2)
                .wrapping_mul(5)
                .wrapping_add(0x52dce729);
            h2 ^= k2.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
            h2 = h2
                .rotate_left(31)
                .wrapping_add(h1)
                .wrapping_mul(5)
                .wrapping_add(0x38495ab5);
        }
        let tail = &key[full..];
        let (mut k1, mut k2) = (0u64, 0u64);
        for (i, &byte) in tail.iter().enumerate() {
            let extended = i64::from(byte as i8) as u64;
            if i < 8 {
                k1 ^= extended << (8 * i)
            } else {
                k2 ^= extended << (8 * (i - 8))
            }
        }
        h2 ^= k2.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
        h1 ^= k1.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
        h1 ^= key.len() as u64;
        h2 ^= key.len() as u64;
        h1 = h1.wrapping_add(h2);
        h2 = h2.wrapping_add(h1);
        let (f1, f2) = (fmix(h1), fmix(h2));
        let h1 = f1.wrapping_add(f2);
        (h1, f2.wrapping_add(h1))
    }

    #[test]
    fn tokens_that_cassandra_computed() {
        assert_eq!(token(&1i32.to_be_bytes()), -4_069_959_284_402_364_209);
        assert_eq!(token(&[0x80, 0xff]), -1_866_254_034_066_908_819);
        // In Partitions.db, where the sign bit of tokens is flipped, this key begins with 0206CD.
        assert_eq!((token(b"key255") as u64 ^ (1 << 63)) >> 40, 0x0206cd);
    }

    #[test]
    fn minimum_is_for_the_empty_key_only() {
        assert_eq!(token(b""), i64::MIN);
        assert_eq!(token_of(b"k", 1 << 63), i64::MAX);
        assert_eq!(hash3_x64_128(b""), (0, 0));
    }

    #[test]
    fn every_length_and_sign() {
        for len in 0..70usize {
            for fill in [0x00u8, 0x7f, 0x80, 0xff] {
                let mut key = vec![fill; len];
                for (index, byte) in key.iter_mut().enumerate() {
                    *byte ^= (index as u8).wrapping_mul(0x35);
                }
                assert_eq!(hash3_x64_128(&key), naive(&key), "{len} {fill:x}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_the_definition(key in proptest::collection::vec(0u8.., 0..130)) {
            proptest::prop_assert_eq!(hash3_x64_128(&key), naive(&key));
        }
    }
}
