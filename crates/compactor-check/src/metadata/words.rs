//! Durations as `sstablemetadata` prints them, and sizes.

/// `2 days 0 hours 5 minutes`: units from the first to the last that are not zero; `None` for zero.
///
/// Source: `DurationFormatUtils.formatDurationWords`, as `SSTableMetadataViewer` calls it.
pub(super) fn duration(seconds: i64) -> Option<String> {
    if seconds == i64::from(i32::MAX) {
        return Some("never".to_owned());
    }
    let units = [
        (seconds / 86_400, "day"),
        (seconds / 3600 % 24, "hour"),
        (seconds / 60 % 60, "minute"),
        (seconds % 60, "second"),
    ];
    let first = units.iter().position(|(amount, _)| *amount != 0)?;
    let last = units.iter().rposition(|(amount, _)| *amount != 0)?;
    let words = units[first..=last].iter().map(|(amount, unit)| {
        let plural = if *amount == 1 { "" } else { "s" };
        format!("{amount} {unit}{plural}")
    });
    Some(words.collect::<Vec<_>>().join(" "))
}

/// `Days: 1 Hours: 2 Minutes: 3 Seconds: 4` of microseconds.
pub(super) fn days_and_hours(micros: i64) -> String {
    let seconds = micros / 1_000_000;
    format!(
        "Days: {} Hours: {} Minutes: {} Seconds: {}",
        seconds / 86_400,
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// `1.5 KiB`; `None` below 1024, where the number of bytes is sufficient.
pub(super) fn bytes(bytes: u64) -> Option<String> {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return None;
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    Some(format!("{value:.1} {}", UNITS[unit]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_words() {
        for (seconds, words) in [
            (1, "1 second"),
            (99, "1 minute 39 seconds"),
            (7200, "2 hours"),
            (172_800 + 300, "2 days 0 hours 5 minutes"),
            (i64::from(i32::MAX), "never"),
        ] {
            assert_eq!(duration(seconds).as_deref(), Some(words));
        }
        assert_eq!(duration(0), None);
        assert_eq!(
            days_and_hours(93_784_999_999),
            "Days: 1 Hours: 2 Minutes: 3 Seconds: 4"
        );
    }

    #[test]
    fn bytes_in_words() {
        assert_eq!(bytes(1023), None);
        assert_eq!(bytes(1536).as_deref(), Some("1.5 KiB"));
        assert_eq!(bytes(1 << 30).as_deref(), Some("1.0 GiB"));
        assert_eq!(bytes(u64::MAX).as_deref(), Some("16.0 EiB"));
    }
}
