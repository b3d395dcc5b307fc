//! Number of hashes and bits per key for a false positive chance.
//!
//! Source: `BloomCalculations`, whose table of measured rates goes back to a course page of the University of
//! Wisconsin-Madison.

use crate::error::{Error, Result};

/// False positive rate by bits per key (row) and number of hashes (column).
const RATES: [&[f64]; 21] = [
    &[1.0],
    &[1.0, 1.0],
    &[1.0, 0.393, 0.4],
    &[1.0, 0.283, 0.237, 0.253],
    &[1.0, 0.221, 0.155, 0.147, 0.16],
    &[1.0, 0.181, 0.109, 0.092, 0.092, 0.101],
    &[1.0, 0.154, 0.080_4, 0.060_9, 0.056_1, 0.057_8, 0.063_8],
    &[1.0, 0.133, 0.061_8, 0.042_3, 0.035_9, 0.034_7, 0.036_4],
    &[
        1.0, 0.118, 0.048_9, 0.030_6, 0.024, 0.021_7, 0.021_6, 0.022_9,
    ],
    &[
        1.0, 0.105, 0.039_7, 0.022_8, 0.016_6, 0.014_1, 0.013_3, 0.013_5, 0.014_5,
    ],
    &[
        1.0, 0.095_2, 0.032_9, 0.017_4, 0.011_8, 0.009_43, 0.008_44, 0.008_19, 0.008_46,
    ],
    &[
        1.0, 0.086_9, 0.027_6, 0.013_6, 0.008_64, 0.006_5, 0.005_52, 0.005_13, 0.005_09,
    ],
    &[
        1.0, 0.08, 0.023_6, 0.010_8, 0.006_46, 0.004_59, 0.003_71, 0.003_29, 0.003_14,
    ],
    &[
        1.0, 0.074, 0.020_3, 0.008_75, 0.004_92, 0.003_32, 0.002_55, 0.002_17, 0.001_99, 0.001_94,
    ],
    &[
        1.0, 0.068_9, 0.017_7, 0.007_18, 0.003_81, 0.002_44, 0.001_79, 0.001_46, 0.001_29,
        0.001_21, 0.001_2,
    ],
    &[
        1.0, 0.064_5, 0.015_6, 0.005_96, 0.003, 0.001_83, 0.001_28, 0.001, 0.000_852, 0.000_775,
        0.000_744,
    ],
    &[
        1.0, 0.060_6, 0.013_8, 0.005, 0.002_39, 0.001_39, 0.000_935, 0.000_702, 0.000_574,
        0.000_505, 0.000_47, 0.000_459,
    ],
    &[
        1.0, 0.057_1, 0.012_3, 0.004_23, 0.001_93, 0.001_07, 0.000_692, 0.000_499, 0.000_394,
        0.000_335, 0.000_302, 0.000_287, 0.000_284,
    ],
    &[
        1.0, 0.054, 0.011_1, 0.003_62, 0.001_58, 0.000_839, 0.000_519, 0.000_36, 0.000_275,
        0.000_226, 0.000_198, 0.000_183, 0.000_176,
    ],
    &[
        1.0, 0.051_3, 0.009_98, 0.003_12, 0.001_3, 0.000_663, 0.000_394, 0.000_264, 0.000_194,
        0.000_155, 0.000_132, 0.000_118, 0.000_111, 0.000_109,
    ],
    &[
        1.0, 0.048_8, 0.009_06, 0.002_7, 0.001_08, 0.000_53, 0.000_303, 0.000_196, 0.000_14,
        0.000_108, 8.89e-05, 7.77e-05, 7.12e-05, 6.79e-05, 6.71e-05,
    ],
];

/// Number of bits per key at which the search begins.
const MIN_BITS_PER_KEY: usize = 2;

/// Number of hashes and bits per key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BloomSpec {
    /// Number of bits set per key.
    pub hash_count: u32,
    /// Number of bits of the filter per expected key.
    pub bits_per_key: u32,
}

/// Returns the number of hashes with the lowest rate, the smallest of equals, at least one.
fn best_hash_count(bits_per_key: usize) -> usize {
    let rates = RATES[bits_per_key];
    let best = (0..rates.len()).min_by(|&a, &b| rates[a].total_cmp(&rates[b]));
    best.unwrap_or(1).max(1)
}

impl BloomSpec {
    /// Returns the smallest filter that meets a false positive chance below 1.
    ///
    /// # Errors
    /// Unsupported below 0.0000671, which 20 bits per key do not reach, and for values that are not a
    /// probability.
    pub fn for_fp_chance(fp_chance: f64) -> Result<BloomSpec> {
        let lowest = RATES[RATES.len() - 1].last().copied().unwrap_or(0.0);
        if fp_chance.is_nan() || fp_chance < lowest || fp_chance > 1.0 {
            return Err(Error::unsupported(format!(
                "bloom_filter_fp_chance {fp_chance}; it must be between {lowest} and 1"
            )));
        }
        if fp_chance >= RATES[MIN_BITS_PER_KEY][1] {
            return Ok(BloomSpec {
                hash_count: 2,
                bits_per_key: best_hash_count(MIN_BITS_PER_KEY) as u32,
            });
        }
        let mut bits = MIN_BITS_PER_KEY;
        let mut hashes = best_hash_count(bits);
        while RATES[bits][hashes] > fp_chance {
            bits += 1;
            hashes = best_hash_count(bits);
        }
        // Uses fewer hashes if the rate permits it.
        while RATES[bits][hashes - 1] <= fp_chance {
            hashes -= 1;
        }
        Ok(BloomSpec {
            hash_count: hashes as u32,
            bits_per_key: bits as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_of_usual_chances() {
        for (chance, hash_count, bits_per_key) in [
            (1.0, 2, 1),
            (0.5, 2, 1),
            (0.393, 2, 1),
            (0.1, 3, 5),
            (0.05, 3, 7),
            (0.01, 5, 10),
            (0.001, 7, 15),
            (0.0001, 10, 20),
        ] {
            let spec = BloomSpec {
                hash_count,
                bits_per_key,
            };
            assert_eq!(BloomSpec::for_fp_chance(chance).unwrap(), spec, "{chance}");
        }
        for chance in [0.0, 6.7e-5, -1.0, 1.1, f64::NAN] {
            assert!(BloomSpec::for_fp_chance(chance).is_err(), "{chance}");
        }
        assert!(BloomSpec::for_fp_chance(6.71e-5).is_ok());
    }

    #[test]
    fn best_hash_counts() {
        let best: Vec<usize> = (0..RATES.len()).map(best_hash_count).collect();
        let known = [
            1, 1, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 8, 9, 10, 10, 11, 12, 12, 13, 14,
        ];
        assert_eq!(best, known);
    }
}
