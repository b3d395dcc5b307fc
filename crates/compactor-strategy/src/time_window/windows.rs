//! Windows of time.
//!
//! Source: `TimeWindowCompactionStrategy.getWindowBoundsInMillis`.

/// Unit of a window's length, parsed by its name in `TimeUnit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "UPPERCASE")]
pub enum WindowUnit {
    /// Minutes.
    Minutes,
    /// Hours.
    Hours,
    /// Days.
    Days,
}

/// Length of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSize {
    /// Unit.
    pub unit: WindowUnit,
    /// Number of units, at least one.
    pub count: u32,
}

/// Unit of the timestamps in a table, parsed by its name in `TimeUnit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "UPPERCASE")]
pub enum Resolution {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds, as those of the server.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
}

impl WindowUnit {
    fn seconds(self) -> i64 {
        match self {
            WindowUnit::Minutes => 60,
            WindowUnit::Hours => 3600,
            WindowUnit::Days => 86_400,
        }
    }
}

impl Resolution {
    /// Milliseconds, rounded towards zero (`TimeUnit.convert`).
    pub(super) fn to_ms(self, timestamp: i64) -> i64 {
        match self {
            Resolution::Seconds => timestamp.saturating_mul(1000),
            Resolution::Milliseconds => timestamp,
            Resolution::Microseconds => timestamp / 1000,
            Resolution::Nanoseconds => timestamp / 1_000_000,
        }
    }
}

impl WindowSize {
    /// Start of the window of a time, both milliseconds since 1970. It is rounded towards zero, so the
    /// windows on both sides of 1970 are one.
    pub fn start_ms(&self, time_ms: i64) -> i64 {
        let seconds = time_ms / 1000;
        let length = self.unit.seconds() * i64::from(self.count);
        (seconds - seconds % length).saturating_mul(1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `TimeWindowCompactionStrategyTest.testTimeWindows`.
    #[test]
    fn windows_begin_at_whole_units() {
        let start = |unit, count, time_ms| WindowSize { unit, count }.start_ms(time_ms);
        let midnight = 1_451_001_600_000;
        assert_eq!(start(WindowUnit::Hours, 1, midnight + 1000), midnight);
        assert_eq!(start(WindowUnit::Minutes, 1, midnight + 1000), midnight);
        assert_eq!(start(WindowUnit::Days, 1, midnight + 1000), midnight);
        assert_eq!(start(WindowUnit::Days, 2, 1_451_088_001_000), midnight);
    }

    #[test]
    fn before_1970_time_is_rounded_towards_zero() {
        let day = WindowSize {
            unit: WindowUnit::Days,
            count: 1,
        };
        assert_eq!(day.start_ms(-1), 0);
        assert_eq!(day.start_ms(-86_399_999), 0);
        assert_eq!(day.start_ms(-86_400_000), -86_400_000);
        assert_eq!(Resolution::Microseconds.to_ms(-999), 0);
        assert_eq!(Resolution::Seconds.to_ms(i64::MAX), i64::MAX);
    }
}
