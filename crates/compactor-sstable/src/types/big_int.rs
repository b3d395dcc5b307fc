//! Arithmetic on Java's `BigInteger.toByteArray`: order and decimal digits.
//!
//! Big-endian two's complement; redundant leading sign bytes are valid.

use std::cmp::Ordering;

use crate::types::MarshalError;

/// Removes redundant leading sign bytes; at least one byte remains unless there is none.
///
/// Source: `IntegerType.findMostSignificantByte`.
pub(super) fn minimal(mut bytes: &[u8]) -> &[u8] {
    while let [0x00, next @ 0x00..=0x7f, ..] | [0xff, next @ 0x80..=0xff, ..] = bytes {
        let _ = next;
        bytes = &bytes[1..];
    }
    bytes
}

/// Whether the number is negative.
pub(super) fn is_negative(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|byte| byte & 0x80 != 0)
}

/// Sign of the result of [`minimal`]: -1, 0 or 1.
pub(super) fn signum(minimal: &[u8]) -> i8 {
    match minimal {
        [] | [0] => 0,
        [first, ..] => {
            if first & 0x80 != 0 {
                -1
            } else {
                1
            }
        }
    }
}

/// Absolute value, if the number has at most 16 bytes.
pub(super) fn small_magnitude(minimal: &[u8]) -> Option<u128> {
    if minimal.len() > 16 {
        return None;
    }
    let mut raw = if is_negative(minimal) {
        [0xff; 16]
    } else {
        [0; 16]
    };
    raw[16 - minimal.len()..].copy_from_slice(minimal);
    Some(i128::from_be_bytes(raw).unsigned_abs())
}

/// An absolute value: 64-bit limbs, least significant first, without leading zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Magnitude {
    limbs: Vec<u64>,
}

/// Largest power of ten in 64 bits.
const CHUNK: u64 = 10_000_000_000_000_000_000;
const CHUNK_DIGITS: u64 = 19;

impl Magnitude {
    pub(super) fn from_twos_complement(bytes: &[u8]) -> Magnitude {
        let negative = is_negative(bytes);
        let fill = if negative { 0xff } else { 0 };
        let mut limbs: Vec<u64> = bytes
            .rchunks(8)
            .map(|chunk| {
                let mut raw = [fill; 8];
                raw[8 - chunk.len()..].copy_from_slice(chunk);
                u64::from_be_bytes(raw)
            })
            .collect();
        if negative {
            let mut carry = true;
            for limb in &mut limbs {
                (*limb, carry) = (!*limb).overflowing_add(u64::from(carry));
            }
            // Only the most negative number of its width has a carry.
            if carry {
                limbs.push(1);
            }
        }
        let mut magnitude = Magnitude { limbs };
        magnitude.trim();
        magnitude
    }

    fn trim(&mut self) {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
    }

    /// Base 2 logarithm, to about 15 digits; -infinity for zero.
    pub(super) fn log2(&self) -> f64 {
        let top = match self.limbs.as_slice() {
            [] => 0.0,
            [only] => *only as f64,
            [.., low, high] => *high as f64 + *low as f64 / 18_446_744_073_709_551_616.0,
        };
        top.log2() + 64.0 * self.limbs.len().saturating_sub(1) as f64
    }

    pub(super) fn times_power_of_ten(mut self, mut power: u64) -> Magnitude {
        while power > 0 && !self.limbs.is_empty() {
            let digits = power.min(CHUNK_DIGITS);
            self.multiply(10u64.pow(digits as u32));
            power -= digits;
        }
        self
    }

    fn multiply(&mut self, factor: u64) {
        let mut carry = 0u64;
        for limb in &mut self.limbs {
            let product = u128::from(*limb) * u128::from(factor) + u128::from(carry);
            *limb = product as u64;
            carry = (product >> 64) as u64;
        }
        if carry != 0 {
            self.limbs.push(carry);
        }
    }

    /// Divides by 10^19 and returns the remainder.
    fn divide_by_chunk(&mut self) -> u64 {
        let mut remainder = 0u64;
        for limb in self.limbs.iter_mut().rev() {
            let dividend = (u128::from(remainder) << 64) | u128::from(*limb);
            *limb = (dividend / u128::from(CHUNK)) as u64;
            remainder = (dividend % u128::from(CHUNK)) as u64;
        }
        self.trim();
        remainder
    }

    /// Decimal digits, without sign.
    pub(super) fn into_digits(mut self) -> String {
        let mut chunks = Vec::new();
        while !self.limbs.is_empty() {
            chunks.push(self.divide_by_chunk());
        }
        let mut digits = chunks.pop().unwrap_or_default().to_string();
        for chunk in chunks.iter().rev() {
            digits.push_str(&format!("{chunk:019}"));
        }
        digits
    }
}

impl PartialOrd for Magnitude {
    fn partial_cmp(&self, other: &Magnitude) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Magnitude {
    fn cmp(&self, other: &Magnitude) -> Ordering {
        self.limbs
            .len()
            .cmp(&other.limbs.len())
            .then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev()))
    }
}

/// Longest number that is printed, in bytes: time grows with the square of its length. 157,826 digits.
const MAX_PRINTED_LEN: usize = 64 << 10;

/// `BigInteger.toString`: sign and digits.
///
/// # Errors
/// A number of more than 64 KiB.
pub(super) fn to_decimal(bytes: &[u8]) -> Result<String, MarshalError> {
    let bytes = minimal(bytes);
    if bytes.len() > MAX_PRINTED_LEN {
        return Err(MarshalError::new(format!(
            "a number of {} bytes; the longest that is printed has {MAX_PRINTED_LEN}",
            bytes.len()
        )));
    }
    let digits = match small_magnitude(bytes) {
        Some(small) => small.to_string(),
        None => Magnitude::from_twos_complement(bytes).into_digits(),
    };
    Ok(if is_negative(bytes) {
        format!("-{digits}")
    } else {
        digits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_known_numbers() {
        assert_eq!(to_decimal(&[0]).unwrap(), "0");
        assert_eq!(to_decimal(&[0xff, 0xff]).unwrap(), "-1");
        assert_eq!(to_decimal(&[0x80]).unwrap(), "-128");
        assert_eq!(to_decimal(&[0, 0, 0x80]).unwrap(), "128");
        // 2^128 and -2^127 in 17 bytes, -2^192.
        let mut bytes = vec![1];
        bytes.extend([0; 16]);
        assert_eq!(
            to_decimal(&bytes).unwrap(),
            "340282366920938463463374607431768211456"
        );
        assert_eq!(
            to_decimal(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap(),
            i128::MIN.to_string()
        );
        let mut bytes = vec![0xff];
        bytes.extend([0; 24]);
        assert_eq!(
            to_decimal(&bytes).unwrap(),
            "-6277101735386680763835789423207666416102355444464034512896"
        );
    }

    #[test]
    fn limbs_agree_with_128_bits() {
        for value in [
            0i128,
            1,
            -1,
            i128::MAX,
            i128::MIN,
            -255,
            1 << 64,
            -(1 << 64),
            10i128.pow(19),
        ] {
            let bytes = value.to_be_bytes();
            assert_eq!(
                Magnitude::from_twos_complement(&bytes).into_digits(),
                value.unsigned_abs().to_string()
            );
            assert_eq!(small_magnitude(minimal(&bytes)), Some(value.unsigned_abs()));
        }
        let power = Magnitude::from_twos_complement(&[3]).times_power_of_ten(25);
        assert_eq!(power.into_digits(), "30000000000000000000000000");
    }

    #[test]
    fn numbers_that_take_too_long_are_not_printed() {
        assert!(to_decimal(&[0x7f; MAX_PRINTED_LEN + 1]).is_err());
        // Leading zeros do not count.
        assert_eq!(to_decimal(&[0; MAX_PRINTED_LEN + 1]).unwrap(), "0");
    }
}
