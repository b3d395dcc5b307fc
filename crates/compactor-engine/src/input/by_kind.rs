//! A value for each column of a header, static and regular ones apart.

/// Values for the columns of a header, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByKind<T> {
    /// Values for the static columns.
    pub static_columns: Vec<T>,
    /// Values for the regular columns.
    pub regular_columns: Vec<T>,
}

impl<T> ByKind<T> {
    /// Values for the static or the regular columns.
    #[inline]
    pub fn of_kind(&self, is_static: bool) -> &[T] {
        if is_static {
            &self.static_columns
        } else {
            &self.regular_columns
        }
    }
}
