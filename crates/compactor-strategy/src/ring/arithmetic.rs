//! Arithmetic of tokens.
//!
//! Source: `Murmur3Partitioner`, `RandomPartitioner`, `Token.size`, `IPartitioner.split`.

use crate::token::Token;

/// Partitioner of a table, by how its tokens are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partitioner {
    /// `Murmur3Partitioner`.
    #[default]
    Murmur3,
    /// `RandomPartitioner`. Where it splits a range, tokens differ from Cassandra's after sixteen digits.
    Random,
    /// Any other, whose tokens are not counted: nothing is split into shards.
    Ordered,
}

impl Partitioner {
    /// The smallest token.
    pub fn minimum(self) -> Token {
        match self {
            Partitioner::Murmur3 => Token(i128::from(i64::MIN)),
            Partitioner::Random => Token(-1),
            Partitioner::Ordered => Token(0),
        }
    }

    /// The token after another (`Token.nextValidToken`).
    pub(super) fn next(self, token: Token) -> Token {
        if token.0 == i128::from(i64::MAX) && self == Partitioner::Murmur3 {
            self.minimum()
        } else {
            Token(token.0.saturating_add(1))
        }
    }

    /// Share of the ring between two tokens; all of it if they are equal.
    pub(super) fn size(self, left: Token, right: Token) -> f64 {
        let size = match self {
            // The difference of tokens that are more than half a ring apart is negative.
            Partitioner::Murmur3 => (right.0 - left.0) as i64 as f64 / 2f64.powi(64),
            _ => right.0.saturating_sub(left.0) as f64 / 2f64.powi(127),
        };
        if size > 0.0 { size } else { size + 1.0 }
    }

    /// Token between two others.
    pub(super) fn split(self, left: Token, right: Token, ratio: f64) -> Token {
        match self {
            Partitioner::Murmur3 => split_murmur3(left.0, right.0, ratio),
            Partitioner::Random => split_random(left.0, right.0, ratio),
            Partitioner::Ordered => left,
        }
    }
}

fn split_murmur3(left: i128, right: i128, ratio: f64) -> Token {
    let (min, max) = (i128::from(i64::MIN), i128::from(i64::MAX));
    let width = if left < right {
        right - left
    } else {
        max - min + right - left
    };
    let token = advanced(left, width, ratio);
    Token(if token <= max {
        token
    } else {
        min + token - max
    })
}

/// `left + width × ratio`, rounded towards zero, with the decimal digits of the ratio that Java prints
/// (`BigDecimal.valueOf`).
fn advanced(left: i128, width: i128, ratio: f64) -> i128 {
    let text = format!("{ratio:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let fraction = digits
        .split_once('.')
        .map_or(0, |(_, fraction)| fraction.len() as i32);
    let mantissa: i128 = digits.replace('.', "").parse().unwrap_or(0);
    let scale = fraction - exponent.parse::<i32>().unwrap_or(0);
    let product = width.saturating_mul(mantissa);
    let power = u32::try_from(scale)
        .ok()
        .and_then(|scale| 10i128.checked_pow(scale));
    let (whole, has_rest) = match power {
        Some(power) => (product / power, product % power != 0),
        // The ratio is so small that nothing is left of it, or it is one or more.
        None if scale > 0 => (0, product != 0),
        None => (width, false),
    };
    let floor = left + whole;
    floor + i128::from(floor < 0 && has_rest)
}

fn split_random(left: i128, right: i128, ratio: f64) -> Token {
    let (left, right) = (left.max(0), right.max(0));
    let width = if left < right {
        right - left
    } else {
        i128::MAX - left + right
    };
    let token = left.saturating_add((width as f64 * ratio) as i128);
    Token(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shares_of_the_ring() {
        let partitioner = Partitioner::Murmur3;
        let min = partitioner.minimum();
        assert_eq!(partitioner.size(min, min), 1.0);
        assert_eq!(partitioner.size(min, Token(0)), 0.5);
        assert_eq!(partitioner.size(Token(0), min), 0.5);
        assert_eq!(partitioner.size(Token(0), Token(1 << 62)), 0.25);
        assert_eq!(partitioner.size(Token(-1 << 62), Token(1 << 62)), 0.5);
        assert_eq!(partitioner.next(Token(i128::from(i64::MAX))), min);
        assert_eq!(Partitioner::Random.size(Token(0), Token(1 << 126)), 0.5);
    }

    #[test]
    fn splits_round_towards_zero() {
        let split = |left, right, ratio| {
            Partitioner::Murmur3
                .split(Token(left), Token(right), ratio)
                .0
        };
        assert_eq!(split(-10, 11, 0.5), 0);
        assert_eq!(split(0, 11, 0.5), 5);
        assert_eq!(split(-11, 0, 0.5), -5);
        assert_eq!(split(-10, 11, 0.1), -7);
        let min = i128::from(i64::MIN);
        // (2^64 - 1) / 4 above the minimum.
        assert_eq!(split(min, min, 0.25), -4_611_686_018_427_387_904);
        assert_eq!(split(1 << 62, -1 << 62, 0.75), min + (1 << 61));
    }
}
