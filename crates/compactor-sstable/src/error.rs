//! Errors in bytes, with position, expectation and finding.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::component::Component;

/// Result of a parser of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reason why bytes could not be parsed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes violate the format.
    #[error("{0}")]
    Corrupt(Box<Corruption>),
    /// The bytes are, as far as can be determined, valid, but of a kind that this project does not handle.
    #[error("{0}")]
    Unsupported(Box<Unsupported>),
}

/// Violation of the format.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Corruption {
    /// File, if known.
    pub path: Option<PathBuf>,
    /// Component, if known.
    pub component: Option<Component>,
    /// Byte offset in the file, or in the uncompressed content: see [`Corruption::is_in_content`].
    pub offset: u64,
    /// Dotted name of the structure, such as `row.cell.value_length`.
    pub structure: &'static str,
    /// Expectation of the format.
    pub expected: String,
    /// Finding in the bytes.
    pub found: String,
    /// Partition being read, if known.
    pub partition: Option<String>,
}

/// Valid content that is not supported.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unsupported {
    /// File, if known.
    pub path: Option<PathBuf>,
    /// Description, and a remedy.
    pub what: String,
}

impl Error {
    /// Creates a corruption error at `offset`.
    #[cold]
    pub fn corrupt(
        structure: &'static str,
        offset: u64,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Error {
        Error::Corrupt(Box::new(Corruption {
            path: None,
            component: None,
            offset,
            structure,
            expected: expected.to_string(),
            found: found.to_string(),
            partition: None,
        }))
    }

    /// Creates an error for unsupported content.
    #[cold]
    pub fn unsupported(what: impl Into<String>) -> Error {
        Error::Unsupported(Box::new(Unsupported {
            path: None,
            what: what.into(),
        }))
    }

    /// Sets the file, unless it is set.
    #[must_use]
    pub fn with_file(mut self, path: &Path, component: Component) -> Error {
        match &mut self {
            Error::Corrupt(c) => {
                c.path.get_or_insert_with(|| path.to_owned());
                c.component.get_or_insert(component);
            }
            Error::Unsupported(u) => {
                u.path.get_or_insert_with(|| path.to_owned());
            }
        }
        self
    }

    /// Sets the partition, unless it is set.
    #[must_use]
    pub fn with_partition(mut self, describe: impl FnOnce() -> String) -> Error {
        if let Error::Corrupt(c) = &mut self {
            c.partition.get_or_insert_with(describe);
        }
        self
    }

    /// Adds `base` to the offset: for a structure parsed from a slice that starts there.
    #[must_use]
    pub fn at_base(mut self, base: u64) -> Error {
        if let Error::Corrupt(c) = &mut self {
            c.offset = c.offset.saturating_add(base);
        }
        self
    }
}

impl Corruption {
    /// Whether the offset is a position in the uncompressed content of `Data.db`: it is for all structures in
    /// it except the chunks and the file themselves.
    pub fn is_in_content(&self) -> bool {
        let is_of_file =
            self.structure.starts_with("chunk") || matches!(self.structure, "sstable" | "data");
        self.component == Some(Component::Data) && !is_of_file
    }
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.path, self.component) {
            (Some(path), _) => write!(f, "{}: ", path.display())?,
            (None, Some(component)) => write!(f, "{component}: ")?,
            (None, None) => {}
        }
        let place = if self.is_in_content() {
            "position"
        } else {
            "offset"
        };
        write!(f, "corrupt {} at {place} {}", self.structure, self.offset)?;
        if let Some(partition) = &self.partition {
            write!(f, " (partition {partition})")?;
        }
        write!(f, ": expected {}, found {}", self.expected, self.found)
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", path.display())?;
        }
        write!(f, "not supported: {}", self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_file_place_expected_and_found() {
        let error = Error::corrupt("row.body_size", 7, "at most 10 bytes", "4294967295")
            .at_base(100)
            .with_file(Path::new("d/nb-1-big-Data.db"), Component::Data)
            .with_partition(|| "6b31".to_owned());
        assert_eq!(
            error.to_string(),
            "d/nb-1-big-Data.db: corrupt row.body_size at position 107 (partition 6b31): \
             expected at most 10 bytes, found 4294967295"
        );
        let error = Error::corrupt("chunk.crc", 7, "1", "2")
            .with_file(Path::new("d/nb-1-big-Data.db"), Component::Data);
        let of_file = "d/nb-1-big-Data.db: corrupt chunk.crc at offset 7: expected 1, found 2";
        assert_eq!(error.to_string(), of_file);
    }
}
