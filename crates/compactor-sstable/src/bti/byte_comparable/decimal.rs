//! Encoding of decimals: a header with the sign of the number and the sign and length of a base-100 exponent,
//! the exponent, and the base-100 digits of a mantissa below 1, terminated by a zero byte.
//!
//! The digits of a negative number are those of its floor at each step: the first one is negative, the others
//! are complements to 100.
//!
//! Source: `DecimalType.asComparableBytes`.

use crate::byte_reader::ByteReader;
use crate::error::{Error, Result};
use crate::types::CqlType;

const POSITIVE_HEADER: u8 = 0x80;
const EXPONENT_HEADER: u8 = 0x40;
const DIGIT_BASE: u8 = 0x80;
const LAST_BYTE: u8 = 0x00;

/// Appends the encoding of `i32 scale | varint unscaled`.
pub(super) fn append(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let mut reader = ByteReader::new(value);
    let scale = reader.i32("decimal.scale")?;
    let unscaled = reader.bytes(reader.remaining(), "decimal.unscaled")?;
    if unscaled.is_empty() {
        return Err(reader.corrupt("decimal.unscaled", "1 byte or more", "none"));
    }
    let text = CqlType::Integer
        .to_text(unscaled)
        .map_err(|error| Error::corrupt("decimal.unscaled", 4, "an integer", error))?;
    let negative = text.starts_with('-');
    let digits = text.trim_start_matches('-').as_bytes();
    if digits == b"0" {
        out.push(POSITIVE_HEADER);
        return Ok(());
    }
    // Rounded down to an even number, so that whole pairs of digits are shifted.
    let shift = (i64::from(scale) - digits.len() as i64) & !1;
    let exponent = -shift >> 1;
    append_exponent(if negative { -exponent } else { exponent }, negative, out);

    let significant = digits.len() - digits.iter().rev().take_while(|d| **d == b'0').count();
    let is_odd = (i64::from(scale) - digits.len() as i64) & 1 != 0;
    append_mantissa(&digits[..significant], is_odd, negative, out);
    Ok(())
}

/// Appends the exponent, whose sign has been flipped for a negative number. It fits 32 bits: both scale and
/// number of digits do, and it is half their difference.
fn append_exponent(exponent: i64, negative: bool, out: &mut Vec<u8>) {
    let len = 8 - (exponent.unsigned_abs().leading_zeros() / 8) as usize;
    let signed_len = if exponent < 0 {
        EXPONENT_HEADER - len as u8
    } else {
        EXPONENT_HEADER + len as u8
    };
    out.push(signed_len + if negative { 0 } else { POSITIVE_HEADER });
    out.extend_from_slice(&exponent.to_be_bytes()[8 - len..]);
}

/// Appends the digits of 0.d1d2…, preceded by a zero if `is_odd`. The last digit is not zero.
fn append_mantissa(digits: &[u8], is_odd: bool, negative: bool, out: &mut Vec<u8>) {
    let digit = |index: usize| digits.get(index).map_or(0, |digit| digit - b'0');
    let pairs = (digits.len() + usize::from(is_odd)).div_ceil(2);
    for pair in 0..pairs {
        let number = match (is_odd, pair) {
            (true, 0) => digit(0),
            (true, _) => 10 * digit(2 * pair - 1) + digit(2 * pair),
            (false, _) => 10 * digit(2 * pair) + digit(2 * pair + 1),
        };
        let is_last = pair + 1 == pairs;
        out.push(match (negative, pair) {
            (false, _) => DIGIT_BASE + number,
            (true, 0) => DIGIT_BASE - number - u8::from(!is_last),
            (true, _) => DIGIT_BASE + 99 + u8::from(is_last) - number,
        });
    }
    out.push(LAST_BYTE);
}
