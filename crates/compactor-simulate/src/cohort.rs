//! Rows of an SSTable, as numbers.

/// Microseconds in a second: timestamps are in microseconds.
pub(crate) const US: f64 = 1e6;

/// State of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Rows with values.
    Live,
    /// Tombstones: of deletions, and of rows whose time to live is over.
    Dead,
}

/// Rows that were written at about the same time, and are overwritten about as often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cohort {
    /// Class of popularity.
    pub class: u16,
    /// State.
    pub kind: Kind,
    /// Interval of time that they are counted in.
    pub bucket: u32,
    /// Oldest timestamp, microseconds since 1970.
    pub oldest_us: i64,
    /// Newest timestamp.
    pub newest_us: i64,
    /// Expected number of rows.
    pub rows: f64,
    /// Probability that a row of the class which is older, and between the tokens of the SSTable, is
    /// overwritten or deleted by one of these.
    pub cover: f64,
}

impl Cohort {
    /// Order in which an SSTable has its cohorts. Those that are equal in it are counted as one.
    pub(crate) fn order(&self) -> (u16, u32, Kind) {
        (self.class, self.bucket, self.kind)
    }

    /// The part of its rows, and of what they overwrite.
    pub(crate) fn scaled(self, rows: f64, cover: f64) -> Cohort {
        Cohort {
            rows: self.rows * rows,
            cover: self.cover * cover,
            ..self
        }
    }

    /// Part of the rows that is older than a time: timestamps are evenly distributed.
    pub(crate) fn part_before(&self, time_us: i64) -> f64 {
        match () {
            () if time_us > self.newest_us => 1.0,
            () if time_us <= self.oldest_us => 0.0,
            () => (time_us - self.oldest_us) as f64 / (self.newest_us - self.oldest_us) as f64,
        }
    }

    /// Splits at a time into the older and the newer part; a part without rows is `None`.
    pub(crate) fn split_at(self, time_us: i64) -> [Option<Cohort>; 2] {
        let part = self.part_before(time_us);
        let older = Cohort {
            newest_us: self
                .newest_us
                .min(time_us.saturating_sub(1))
                .max(self.oldest_us),
            ..self.scaled(part, part)
        };
        let newer = Cohort {
            oldest_us: self.oldest_us.max(time_us).min(self.newest_us),
            ..self.scaled(1.0 - part, 1.0 - part)
        };
        [(part > 0.0).then_some(older), (part < 1.0).then_some(newer)]
    }

    fn absorb(&mut self, other: &Cohort) {
        self.rows += other.rows;
        self.cover += other.cover;
        self.oldest_us = self.oldest_us.min(other.oldest_us);
        self.newest_us = self.newest_us.max(other.newest_us);
    }
}

/// Fewest rows that count: of less, no SSTable would have any.
const FEWEST_ROWS: f64 = 1e-3;

/// Sorts cohorts and joins those that count as one.
pub(crate) fn joined(mut cohorts: Vec<Cohort>) -> Vec<Cohort> {
    cohorts.retain(|cohort| cohort.rows > FEWEST_ROWS);
    cohorts.sort_by_key(Cohort::order);
    cohorts.dedup_by(|next, last| {
        let is_same = next.order() == last.order();
        if is_same {
            last.absorb(next);
        }
        is_same
    });
    cohorts
}

/// Intervals of time in which rows are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buckets {
    start_us: i64,
    width_us: i64,
}

impl Buckets {
    /// Intervals of this length; the first one has everything before it, too.
    pub(crate) fn new(start_us: i64, width_s: f64) -> Buckets {
        Buckets {
            start_us,
            width_us: ((width_s * US) as i64).max(1),
        }
    }

    /// Interval of a time.
    pub(crate) fn of(&self, time_us: i64) -> u32 {
        let bucket = (time_us - self.start_us).max(0) / self.width_us;
        u32::try_from(bucket).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cohort(bucket: u32, kind: Kind, rows: f64) -> Cohort {
        Cohort {
            class: 0,
            kind,
            bucket,
            oldest_us: 100,
            newest_us: 200,
            rows,
            cover: 0.5,
        }
    }

    #[test]
    fn equal_ones_are_joined() {
        let found = joined(vec![
            cohort(2, Kind::Live, 5.0),
            cohort(1, Kind::Dead, 1.0),
            cohort(2, Kind::Live, 7.0),
            cohort(3, Kind::Live, 0.0),
        ]);
        let rows: Vec<f64> = found.iter().map(|cohort| cohort.rows).collect();
        assert_eq!(rows, [1.0, 12.0]);
    }

    #[test]
    fn a_split_keeps_all_rows() {
        let [older, newer] = cohort(0, Kind::Live, 100.0).split_at(125);
        let (older, newer) = (older.expect("a quarter"), newer.expect("the rest"));
        assert_eq!((older.rows, newer.rows), (25.0, 75.0));
        assert_eq!((older.newest_us, newer.oldest_us), (124, 125));
        assert_eq!(cohort(0, Kind::Live, 1.0).split_at(100)[0], None);
        assert_eq!(cohort(0, Kind::Live, 1.0).split_at(201)[1], None);
    }

    #[test]
    fn times_have_buckets() {
        let buckets = Buckets::new(1_000_000, 2.0);
        let found = [0, 1_000_000, 2_999_999, 3_000_000].map(|time| buckets.of(time));
        assert_eq!(found, [0, 0, 0, 1]);
    }
}
