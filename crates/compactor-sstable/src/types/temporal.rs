//! Dates and times as printed by Java, in UTC.

/// Day, month and proleptic year of the Gregorian calendar.
#[derive(Clone, Copy)]
struct Date {
    year: i64,
    month: i64,
    day: i64,
}

const SECONDS_PER_DAY: i64 = 86_400;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Converts days since 1970-01-01, in 400-year cycles that begin on the first of March of year 0.
fn date_of_day(epoch_day: i64) -> Date {
    const DAYS_PER_CYCLE: i64 = 146_097;
    const MARCH_0000_TO_1970: i64 = 719_468;
    let shifted = epoch_day + MARCH_0000_TO_1970;
    let cycle = shifted.div_euclid(DAYS_PER_CYCLE);
    let day_of_cycle = shifted.rem_euclid(DAYS_PER_CYCLE);
    let year_of_cycle =
        (day_of_cycle - day_of_cycle / 1460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year =
        day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_cycle + cycle * 400 + i64::from(month <= 2);
    Date { year, month, day }
}

/// At least four digits; more are preceded by a plus sign (`SignStyle.EXCEEDS_PAD`).
fn push_year(year: i64, out: &mut String) {
    match year {
        10_000.. => out.push_str(&format!("+{year}")),
        0..10_000 => out.push_str(&format!("{year:04}")),
        _ => out.push_str(&format!("-{:04}", year.unsigned_abs())),
    }
}

fn push_month_and_day(date: Date, out: &mut String) {
    out.push_str(&format!("-{:02}-{:02}", date.month, date.day));
}

fn push_time_of_day(second_of_day: i64, out: &mut String) {
    let (hour, minute, second) = (
        second_of_day / 3600,
        second_of_day / 60 % 60,
        second_of_day % 60,
    );
    out.push_str(&format!("{hour:02}:{minute:02}:{second:02}"));
}

/// `yyyy-MM-dd'T'HH:mm:ss.SSSX`, or with another separator before the time.
///
/// `yyyy` is the year of the era, so that years before year 1 lose their sign, as in Cassandra.
///
/// Source: `TimestampSerializer.FORMATTER_UTC`, `FORMATTER_TO_JSON`.
pub(super) fn push_timestamp(millis: i64, separator: char, out: &mut String) {
    let seconds = millis.div_euclid(1000);
    let date = date_of_day(seconds.div_euclid(SECONDS_PER_DAY));
    push_year(
        if date.year > 0 {
            date.year
        } else {
            1 - date.year
        },
        out,
    );
    push_month_and_day(date, out);
    out.push(separator);
    push_time_of_day(seconds.rem_euclid(SECONDS_PER_DAY), out);
    out.push_str(&format!(".{:03}Z", millis.rem_euclid(1000)));
}

/// `ISO_LOCAL_DATE` of a day counted from 1970-01-01 minus 2^31.
///
/// Source: `SimpleDateSerializer.toString`.
pub(super) fn push_simple_date(raw: u32, out: &mut String) {
    let date = date_of_day(i64::from(raw) - (1 << 31));
    push_year(date.year, out);
    push_month_and_day(date, out);
}

/// `HH:mm:ss.nnnnnnnnn`; `None` outside of one day, where Cassandra asserts.
///
/// Source: `TimeSerializer.toString`.
pub(super) fn push_time(nanos: i64, out: &mut String) -> Option<()> {
    if !(0..SECONDS_PER_DAY * NANOS_PER_SECOND).contains(&nanos) {
        return None;
    }
    push_time_of_day(nanos / NANOS_PER_SECOND, out);
    out.push_str(&format!(".{:09}", nanos % NANOS_PER_SECOND));
    Some(())
}

/// `1y2mo3d4h5m6s7ms8us9ns`; nothing for a duration of zero.
///
/// Source: `Duration.toString`, which leaves out months, days or nanoseconds of the least number of their types.
pub(super) fn push_duration(months: i32, days: i32, nanos: i64, out: &mut String) {
    if months < 0 || days < 0 || nanos < 0 {
        out.push('-');
    }
    let mut push = |amount: u64, unit: &str| {
        if amount > 0 {
            out.push_str(&format!("{amount}{unit}"));
        }
    };
    let months = u64::from(months.unsigned_abs());
    push(months / 12, "y");
    push(months % 12, "mo");
    push(u64::from(days.unsigned_abs()), "d");
    let mut rest = nanos.unsigned_abs();
    for (unit, nanos_per_unit) in [
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1000),
        ("ns", 1),
    ] {
        push(rest / nanos_per_unit, unit);
        rest %= nanos_per_unit;
    }
}

/// `Instant.toString`: fraction of 0, 3, 6 or 9 digits.
fn instant(seconds: i64, nanos: i64) -> String {
    let mut out = String::new();
    let date = date_of_day(seconds.div_euclid(SECONDS_PER_DAY));
    push_year(date.year, &mut out);
    push_month_and_day(date, &mut out);
    out.push('T');
    push_time_of_day(seconds.rem_euclid(SECONDS_PER_DAY), &mut out);
    if nanos == 0 {
    } else if nanos % 1_000_000 == 0 {
        out.push_str(&format!(".{:03}", nanos / 1_000_000));
    } else if nanos % 1000 == 0 {
        out.push_str(&format!(".{:06}", nanos / 1000));
    } else {
        out.push_str(&format!(".{nanos:09}"));
    }
    out.push('Z');
    out
}

/// Formats a write timestamp (microseconds since 1970) as printed by `sstabledump`.
///
/// Cassandra truncates the seconds towards zero but rounds down for the fraction, so that timestamps before
/// 1970 are up to a second late; and it saturates at 2^63 nanoseconds (year 2262), beyond which the fraction
/// is not that of the timestamp.
///
/// Source: `JsonTransformer.dateString`.
pub fn date_string_of_micros(micros: i64) -> String {
    let nanos = micros.saturating_mul(1000);
    instant(micros / 1_000_000, nanos.rem_euclid(NANOS_PER_SECOND))
}

/// Formats a local deletion time (seconds since 1970) as printed by `sstabledump`.
///
/// Source: `JsonTransformer.dateString`.
pub fn date_string_of_seconds(seconds: i64) -> String {
    let nanos = seconds.saturating_mul(NANOS_PER_SECOND);
    instant(seconds, nanos.rem_euclid(NANOS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timestamp(millis: i64) -> String {
        let mut out = String::new();
        push_timestamp(millis, ' ', &mut out);
        out
    }

    fn simple_date(raw: u32) -> String {
        let mut out = String::new();
        push_simple_date(raw, &mut out);
        out
    }

    #[test]
    fn timestamps() {
        assert_eq!(timestamp(0), "1970-01-01 00:00:00.000Z");
        assert_eq!(timestamp(-1), "1969-12-31 23:59:59.999Z");
        assert_eq!(timestamp(1_709_210_096_789), "2024-02-29 12:34:56.789Z");
        assert_eq!(timestamp(253_402_300_800_000), "+10000-01-01 00:00:00.000Z");
        // 1 BC and 2 BC: the era is lost.
        assert_eq!(timestamp(-62_135_596_800_001), "0001-12-31 23:59:59.999Z");
        assert_eq!(timestamp(-62_198_755_200_000), "0002-01-01 00:00:00.000Z");
        assert_eq!(timestamp(i64::MAX), "+292278994-08-17 07:12:55.807Z");
        assert_eq!(timestamp(i64::MIN), "+292275056-05-16 16:47:04.192Z");
    }

    #[test]
    fn dates() {
        assert_eq!(simple_date(1 << 31), "1970-01-01");
        assert_eq!(simple_date((1 << 31) - 1), "1969-12-31");
        assert_eq!(simple_date((1 << 31) - 719_528), "0000-01-01");
        assert_eq!(simple_date((1 << 31) - 719_529), "-0001-12-31");
        assert_eq!(simple_date(0), "-5877641-06-23");
        assert_eq!(simple_date(u32::MAX), "+5881580-07-11");
    }

    #[test]
    fn times_of_day() {
        let mut out = String::new();
        assert!(push_time(86_399_999_999_999, &mut out).is_some());
        assert_eq!(out, "23:59:59.999999999");
        assert!(push_time(86_400_000_000_000, &mut out).is_none());
        assert!(push_time(-1, &mut out).is_none());
    }

    #[test]
    fn durations() {
        let text = |months, days, nanos| {
            let mut out = String::new();
            push_duration(months, days, nanos, &mut out);
            out
        };
        assert_eq!(text(0, 0, 0), "");
        assert_eq!(text(14, 3, 14_706_007_008_009), "1y2mo3d4h5m6s7ms8us9ns");
        assert_eq!(text(-1, 0, -1), "-1mo1ns");
        assert_eq!(text(12, 0, 60_000_000_000), "1y1m");
        assert_eq!(text(i32::MIN, 0, 0), "-178956970y8mo");
    }

    #[test]
    fn instants_of_sstabledump() {
        assert_eq!(
            date_string_of_micros(1_700_000_000_000_000),
            "2023-11-14T22:13:20Z"
        );
        assert_eq!(
            date_string_of_micros(1_700_000_000_120_000),
            "2023-11-14T22:13:20.120Z"
        );
        assert_eq!(
            date_string_of_micros(1_700_000_000_000_001),
            "2023-11-14T22:13:20.000001Z"
        );
        assert_eq!(
            date_string_of_seconds(1_700_000_000),
            "2023-11-14T22:13:20Z"
        );
        assert_eq!(date_string_of_seconds(-1), "1969-12-31T23:59:59Z");
        // Seconds truncated towards zero, fraction rounded down.
        assert_eq!(date_string_of_micros(-1), "1970-01-01T00:00:00.999999Z");
        // The fraction is that of 2^63 - 1 nanoseconds.
        assert_eq!(
            date_string_of_micros(i64::MAX),
            "+294247-01-10T04:00:54.854775807Z"
        );
    }
}
