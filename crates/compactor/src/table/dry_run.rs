//! Plans for dry runs.

use std::ops::Deref;

/// A merge or compaction with open inputs that can be inspected but not run: it has no claim on the output directory,
/// where another process may write meanwhile.
///
/// ```compile_fail,E0507
/// # fn main() -> Result<(), compactor::Error> {
/// let table = compactor::Table::open("snapshot")?;
/// let plan = table.merge().plan("merged")?;
/// println!("{} bytes would be read", plan.uncompressed_bytes());
/// plan.run(&mut compactor::NoObserver)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DryRun<T>(pub(super) T);

impl<T> Deref for DryRun<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
