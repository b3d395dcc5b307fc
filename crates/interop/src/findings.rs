//! Findings of the verifier.

use std::fmt;

use serde::Deserialize;

/// A defect of an SSTable.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
pub struct Finding {
    /// The check that failed, such as `verifier` or `promoted-index`.
    pub check: String,
    /// Expected and found values.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.message)
    }
}
