//! Numbers as people read them.

use jiff::Timestamp;

pub(crate) const MIB: f64 = (1u64 << 20) as f64;
pub(crate) const GIB: f64 = (1u64 << 30) as f64;

/// Text for a number that is missing.
pub const NONE: &str = "–";

/// Nanoseconds as milliseconds, without the unit: `0.0855`, `1.84`, `1,240`.
pub fn milliseconds(ns: f64) -> String {
    significant(ns / 1e6)
}

/// A number with three significant digits, and no fewer digits than it has before the point.
pub fn significant(number: f64) -> String {
    if !number.is_finite() {
        return NONE.to_owned();
    }
    let magnitude = number.abs();
    let places = if magnitude >= 100.0 || magnitude == 0.0 {
        0
    } else {
        // 0 for 100, 1 for 10, 2 for 1, 3 for 0.1; nothing is measured below 1e-9.
        (2.0 - magnitude.log10().floor()).clamp(0.0, 9.0) as usize
    };
    // 0.9996 is 1.00 and has a place less.
    let rounded = 10f64.powi(places as i32);
    let rounded = (magnitude * rounded).round() / rounded;
    let is_next = rounded >= 10f64.powi(3 - places as i32);
    let places = places - usize::from(is_next && places > 0);
    let text = format!("{number:.places$}");
    if magnitude >= 9999.5 {
        return crate::text_table::count(number.abs().round() as u64);
    }
    text
}

/// A ratio: `×0.24`.
pub fn times(ratio: f64) -> String {
    format!("×{}", significant(ratio))
}

/// Bytes with a binary unit: `64 MiB`, `1.5 GiB`.
pub fn bytes(bytes: f64) -> String {
    let (mut value, mut unit) = (bytes, "B");
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value.abs() < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    let number = if value.fract() == 0.0 && value.abs() < 1e4 {
        format!("{value:.0}")
    } else {
        significant(value)
    };
    format!("{number} {unit}")
}

/// Bytes as MiB, without the unit.
pub fn mebibytes(bytes: f64) -> String {
    significant(bytes / MIB)
}

/// Seconds: `1.84 s`, `190 s`.
pub fn seconds(seconds: f64) -> String {
    format!("{} s", significant(seconds))
}

/// Milliseconds since 1970 as a date and time of UTC: `2026-01-01 00:00 UTC`.
pub fn utc(ms: u64) -> String {
    let time = i64::try_from(ms)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(
        || NONE.to_owned(),
        |time| time.strftime("%Y-%m-%d %H:%M UTC").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (ns, text) in [
            (85_517.0, "0.0855"),
            (460_031.0, "0.460"),
            (1_840_000.0, "1.84"),
            (999_400.0, "0.999"),
            (999_600.0, "1.00"),
            (9_996_000.0, "10.0"),
            (99_960_000.0, "100"),
            (17_964_062.0, "18.0"),
            (100_600_000.0, "101"),
            (12_345_000_000.0, "12,345"),
            (0.0, "0"),
            (f64::NAN, NONE),
        ] {
            assert_eq!(milliseconds(ns), text);
        }
        for (number, text) in [
            (0.0, "0 B"),
            (4096.0, "4 KiB"),
            (402_653_184.0, "384 MiB"),
            (1_610_612_736.0, "1.50 GiB"),
        ] {
            assert_eq!(bytes(number), text);
        }
        assert_eq!(times(0.2389), "×0.239");
    }

    #[test]
    fn dates() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_340, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_767_225_600, "2026-01-01 00:00 UTC"),
            (4_107_542_399, "2100-02-28 23:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(utc(seconds * 1000), text);
        }
    }
}
