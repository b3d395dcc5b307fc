//! Values that compress as well as asked for.
//!
//! A value is divided into periods, each of which begins with random bytes and ends with a piece of a
//! fixed text that LZ4 finds again some hundred bytes earlier. The reference to it takes a few bytes.

use super::random::Random;

/// Bytes after which randomness and repetition change places again.
const PERIOD: usize = 128;
/// Bytes that LZ4 spends on a period in addition to its random bytes: token, offset and lengths, and parts of the
/// dictionary that it has not seen in this chunk (measured).
const REPETITION_COST: f64 = 10.0;

/// Repeated in values. Short, so that a chunk sees all of it soon.
const DICTIONARY: &str = "the quick brown fox jumps over the lazy dog while five boxing wizards \
     watch and a quart jar of oil mixed with zinc oxide makes very bright paint; pack my box with \
     twelve dozen jugs of liquid veneer before the sphinx of black quartz judges her vow and \
     a mad boxer shot a quick gloved jab to the jaw of his dizzy opponent; ";

const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

/// Makes values of one compressibility.
#[derive(Clone, Debug)]
pub(super) struct Values {
    repeated_per_period: usize,
}

impl Values {
    /// `compressibility` is the fraction by which LZ4 shrinks them: 0 for random bytes.
    pub(super) fn new(compressibility: f64) -> Values {
        let repeated = if compressibility > 0.0 {
            PERIOD as f64 * compressibility + REPETITION_COST
        } else {
            0.0
        };
        Values {
            repeated_per_period: (repeated.round() as usize).min(PERIOD),
        }
    }

    /// Appends `len` bytes.
    pub(super) fn put_bytes(&self, random: &mut Random, len: usize, out: &mut Vec<u8>) {
        self.put(random, len, out, |random, count, out| {
            let mut left = count;
            while left >= 8 {
                out.extend_from_slice(&random.next().to_le_bytes());
                left -= 8;
            }
            out.extend_from_slice(&random.next().to_le_bytes()[..left]);
        });
    }

    /// Appends `len` bytes of ASCII.
    pub(super) fn put_text(&self, random: &mut Random, len: usize, out: &mut Vec<u8>) {
        self.put(random, len, out, |random, count, out| {
            let mut left = count;
            while left > 0 {
                let mut letters = random.next().to_le_bytes();
                for letter in &mut letters {
                    *letter = LETTERS[usize::from(*letter & 63)];
                }
                let taken = left.min(8);
                out.extend_from_slice(&letters[..taken]);
                left -= taken;
            }
        });
    }

    #[inline]
    fn put(
        &self,
        random: &mut Random,
        len: usize,
        out: &mut Vec<u8>,
        put_random: impl Fn(&mut Random, usize, &mut Vec<u8>),
    ) {
        out.reserve(len);
        let mut left = len;
        while left > 0 {
            let period = left.min(PERIOD);
            let repeated = period * self.repeated_per_period / PERIOD;
            put_random(random, period - repeated, out);
            // A place in the dictionary that leaves room for the longest piece.
            let at = random.below((DICTIONARY.len() - PERIOD) as u64) as usize;
            out.extend_from_slice(&DICTIONARY.as_bytes()[at..at + repeated]);
            left -= period;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_exact_and_text_is_text() {
        for compressibility in [0.0, 0.3, 1.0] {
            let values = Values::new(compressibility);
            for len in [0, 1, 7, 8, 127, 128, 129, 1000] {
                let mut random = Random::of(1, &[len as u64]);
                let mut out = Vec::new();
                values.put_text(&mut random, len, &mut out);
                assert_eq!(out.len(), len);
                assert!(out.iter().all(|b| (b' '..0x7f).contains(b)));
                values.put_bytes(&mut random, len, &mut out);
                assert_eq!(out.len(), 2 * len);
            }
        }
    }
}
