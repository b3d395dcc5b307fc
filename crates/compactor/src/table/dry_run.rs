//! Plans that are looked at and never run.

use std::ops::Deref;

/// What would be run, with inputs open and everything checked, but without a claim on the output directory, so that it
/// cannot be run: another process may write there meanwhile.
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
