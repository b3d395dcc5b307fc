//! Numbers as printed by Java.

use std::fmt::LowerExp;
use std::num::FpCategory;
use std::str::FromStr;

use crate::types::{MarshalError, big_int};

/// `Double.toString`, in the shortest form that is read back as the same value (JDK 19 and later).
///
/// Older JDKs sometimes print more digits than necessary (`2.0E-3` as `0.0020`), which are read back as the
/// same value.
pub(super) fn push_double(value: f64, out: &mut String) {
    push_float(value, value.is_sign_negative(), value.classify(), out);
}

/// `Float.toString`, in the same form.
pub(super) fn push_single(value: f32, out: &mut String) {
    push_float(value, value.is_sign_negative(), value.classify(), out);
}

fn push_float<F: PartialEq + LowerExp + FromStr>(
    value: F,
    negative: bool,
    category: FpCategory,
    out: &mut String,
) {
    if negative && category != FpCategory::Nan {
        out.push('-');
    }
    match category {
        FpCategory::Nan => return out.push_str("NaN"),
        FpCategory::Infinite => return out.push_str("Infinity"),
        FpCategory::Zero => return out.push_str("0.0"),
        FpCategory::Normal | FpCategory::Subnormal => {}
    }
    let mut shortest = format!("{value:e}");
    let digits = shortest.split('e').next().unwrap_or_default();
    let digits = digits.bytes().filter(u8::is_ascii_digit).count();
    // Java prints at least two digits. Of several decimals of that length it chooses the nearest, and of two
    // equally near ones the even one, which is the result of rounding to a precision.
    let nearest = format!("{value:.*e}", digits.max(2) - 1);
    if nearest.parse::<F>().is_ok_and(|parsed| parsed == value) {
        shortest = nearest;
    }
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let mantissa: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    push_scientific_or_plain(
        mantissa.trim_end_matches('0'),
        exponent.parse().unwrap_or(0),
        out,
    );
}

/// Plain from 10^-3 to 10^7, otherwise scientific; at least one digit after the point.
fn push_scientific_or_plain(digits: &str, exponent: i32, out: &mut String) {
    let or_zero = |digits: &str, out: &mut String| {
        out.push_str(if digits.is_empty() { "0" } else { digits });
    };
    match exponent {
        0..7 => {
            let whole_len = exponent as usize + 1;
            let (whole, fraction) = digits.split_at(whole_len.min(digits.len()));
            out.push_str(whole);
            out.extend(std::iter::repeat_n('0', whole_len - whole.len()));
            out.push('.');
            or_zero(fraction, out);
        }
        -3..0 => {
            out.push_str("0.");
            out.extend(std::iter::repeat_n('0', (-exponent - 1) as usize));
            out.push_str(digits);
        }
        _ => {
            let (whole, fraction) = digits.split_at(digits.len().min(1));
            out.push_str(whole);
            out.push('.');
            or_zero(fraction, out);
            out.push_str(&format!("E{exponent}"));
        }
    }
}

/// `BigDecimal.toString`: `unscaled` with a point, or scientific if the exponent requires it.
///
/// # Errors
/// A number that is too long to be printed.
pub(super) fn push_decimal(
    scale: i32,
    unscaled: &[u8],
    out: &mut String,
) -> Result<(), MarshalError> {
    let number = big_int::to_decimal(unscaled)?;
    let digits = match number.strip_prefix('-') {
        Some(digits) => {
            out.push('-');
            digits
        }
        None => number.as_str(),
    };
    if scale == 0 {
        out.push_str(digits);
        return Ok(());
    }
    let adjusted = digits.len() as i64 - 1 - i64::from(scale);
    if scale > 0 && adjusted >= -6 {
        let scale = scale as usize;
        match digits.len().checked_sub(scale) {
            Some(whole_len) if whole_len > 0 => {
                let (whole, fraction) = digits.split_at(whole_len);
                out.push_str(whole);
                out.push('.');
                out.push_str(fraction);
            }
            // At most six zeros, since `adjusted` is not less.
            _ => {
                out.push_str("0.");
                out.extend(std::iter::repeat_n('0', scale - digits.len()));
                out.push_str(digits);
            }
        }
        return Ok(());
    }
    let (whole, fraction) = digits.split_at(1);
    out.push_str(whole);
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    if adjusted != 0 {
        out.push_str(&format!("E{adjusted:+}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn double(value: f64) -> String {
        let mut out = String::new();
        push_double(value, &mut out);
        out
    }

    fn single(value: f32) -> String {
        let mut out = String::new();
        push_single(value, &mut out);
        out
    }

    fn decimal(scale: i32, unscaled: i64) -> String {
        let mut out = String::new();
        push_decimal(scale, &unscaled.to_be_bytes(), &mut out).unwrap();
        out
    }

    #[test]
    fn doubles_as_java_prints_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (100.0, "100.0"),
            (1234567.0, "1234567.0"),
            (9999999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (12345678.9, "1.23456789E7"),
            (0.001, "0.001"),
            (0.002, "0.002"),
            (0.00099, "9.9E-4"),
            (2e-3, "0.002"),
            (1e23, "1.0E23"),
            (2e23, "2.0E23"),
            (1e21, "1.0E21"),
            (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
            (f64::from_bits(1), "4.9E-324"),
            (f64::from_bits(2), "9.9E-324"),
            (f64::from_bits(4), "2.0E-323"),
            (f64::MAX, "1.7976931348623157E308"),
            (0.1 + 0.2, "0.30000000000000004"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(double(value), text);
        }
    }

    #[test]
    fn floats_as_java_prints_them() {
        for (value, text) in [
            (0.1, "0.1"),
            (1.0, "1.0"),
            (3.4028235e38, "3.4028235E38"),
            (1e10, "1.0E10"),
            (f32::from_bits(1), "1.4E-45"),
            (f32::from_bits(2), "2.8E-45"),
            (1.1754944e-38, "1.1754944E-38"),
            (16777216.0, "1.6777216E7"),
            // -1223171.25 and 1223171.75 are midway between two decimals of eight digits.
            (f32::from_bits(0xc995_501a), "-1223171.2"),
            (f32::from_bits(0x4995_501e), "1223171.8"),
            (0.3, "0.3"),
        ] {
            assert_eq!(single(value), text);
        }
    }

    #[test]
    fn decimals_as_java_prints_them() {
        for (scale, unscaled, text) in [
            (0, 123, "123"),
            (0, -123, "-123"),
            (-1, 123, "1.23E+3"),
            (-3, 123, "1.23E+5"),
            (1, 123, "12.3"),
            (1, -123, "-12.3"),
            (3, 123, "0.123"),
            (5, 123, "0.00123"),
            (8, 123, "0.00000123"),
            (9, 123, "1.23E-7"),
            (10, 123, "1.23E-8"),
            (2, 0, "0.00"),
            (6, 0, "0.000000"),
            (7, 0, "0E-7"),
            (-2, 0, "0E+2"),
            (-1, 1, "1E+1"),
            (i32::MAX, 12, "1.2E-2147483646"),
            (i32::MIN, 1, "1E+2147483648"),
            (2, 100, "1.00"),
        ] {
            assert_eq!(decimal(scale, unscaled), text, "{unscaled} scale {scale}");
        }
    }
}
