//! Distribution of updates and reads over the rows.

/// Which rows are updated, deleted and read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// All equally. The rows of a partition are written at any time.
    Uniform,
    /// A few get most of the updates and reads.
    Zipf {
        /// The k-th most popular row is drawn in proportion to 1/k^exponent.
        exponent: f64,
    },
    /// None is written twice, and the rows of a partition are written at about the same time, as in a time
    /// series whose partitions are of an hour or a day.
    TimeOrdered,
}
