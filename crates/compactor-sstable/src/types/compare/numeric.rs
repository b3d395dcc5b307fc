//! Order of varint and decimal.

use std::cmp::Ordering;

use crate::types::big_int::{self, Magnitude};
use crate::types::compare::by_validity;

/// Numeric order; empty first; redundant sign bytes do not matter.
///
/// Source: `IntegerType.compareIntegers`.
pub(super) fn varint(a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return a.len().min(1).cmp(&b.len().min(1));
    }
    let (a, b) = (big_int::minimal(a), big_int::minimal(b));
    let (negative_a, negative_b) = (big_int::is_negative(a), big_int::is_negative(b));
    if negative_a != negative_b {
        return negative_b.cmp(&negative_a);
    }
    let by_len = if negative_a {
        b.len().cmp(&a.len())
    } else {
        a.len().cmp(&b.len())
    };
    // With equal signs and lengths two's complement sorts like unsigned bytes.
    by_len.then_with(|| a.cmp(b))
}

/// `i32 scale | varint unscaled`: numeric order, so that 1.0 equals 1.00; empty first.
///
/// Source: `DecimalType`, `BigDecimal.compareTo`.
pub(super) fn decimal(a: &[u8], b: &[u8]) -> Ordering {
    if let Some(order) = by_validity(a, b, |bytes| bytes.len() > 4) {
        return order;
    }
    let (Some((scale_a, a)), Some((scale_b, b))) = (a.split_first_chunk(), b.split_first_chunk())
    else {
        return Ordering::Equal;
    };
    let (a, b) = (big_int::minimal(a), big_int::minimal(b));
    let signs = (big_int::signum(a), big_int::signum(b));
    if signs.0 != signs.1 {
        return signs.0.cmp(&signs.1);
    }
    if signs.0 == 0 {
        return Ordering::Equal;
    }
    let scale = |raw: &[u8; 4]| i64::from(i32::from_be_bytes(*raw));
    let order = scaled_magnitudes(a, scale(scale_a), b, scale(scale_b));
    if signs.0 < 0 { order.reverse() } else { order }
}

/// Compares `|a| / 10^scale_a` with `|b| / 10^scale_b`; neither is zero.
fn scaled_magnitudes(a: &[u8], scale_a: i64, b: &[u8], scale_b: i64) -> Ordering {
    if scale_a > scale_b {
        return scaled_magnitudes(b, scale_b, a, scale_a).reverse();
    }
    // Compares a * 10^power with b.
    let power = (scale_b - scale_a) as u64;
    if let (Some(a), Some(b)) = (big_int::small_magnitude(a), big_int::small_magnitude(b)) {
        let scaled = u32::try_from(power)
            .ok()
            .and_then(|power| 10u128.checked_pow(power)?.checked_mul(a));
        // A number that does not fit 128 bits is greater than one that does.
        return scaled.map_or(Ordering::Greater, |scaled| scaled.cmp(&b));
    }
    let (a, b) = (
        Magnitude::from_twos_complement(a),
        Magnitude::from_twos_complement(b),
    );
    // The scale may be up to 2^32, so 10^power is computed only if, according to the logarithms, the result
    // is about as long as b. Errors of the logarithms are well below the margin.
    const MARGIN: f64 = 1e-4;
    let difference = a.log2() + power as f64 * std::f64::consts::LOG2_10 - b.log2();
    if difference > MARGIN {
        Ordering::Greater
    } else if difference < -MARGIN {
        Ordering::Less
    } else {
        a.times_power_of_ten(power).cmp(&b)
    }
}
