//! Files of an SSTable that exist, compared with those that should.
//!
//! `TOC.txt` is trusted as far as Cassandra trusts it. A node takes the files that are in the directory
//! (`Directories.SSTableLister`); a listed file that is missing is only logged as an error
//! (`TOCComponent.loadTOC`), unless it is `CompressionInfo.db`
//! (`CompressionInfoComponent.verifyCompressionInfoExistenceIfApplicable`).

use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::toc::Toc;
use compactor_sstable::version::Format;

use crate::error::{Error, Result};
use crate::input::existing::if_exists;

/// The files of one SSTable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComponentList {
    /// Known components, with their lengths in bytes.
    pub present: Vec<(Component, u64)>,
    /// Name suffixes of other files that `TOC.txt` lists, such as those of secondary indexes.
    pub foreign: Vec<String>,
}

/// Length of the SSTable's file with this name suffix, of whatever kind, bytes; `None` if there is none.
pub fn len_of_other(descriptor: &Descriptor, suffix: &str) -> Option<u64> {
    let path = descriptor.directory.join(descriptor.file_name_of(suffix));
    let metadata = std::fs::metadata(path).ok()?;
    (!suffix.contains('/')).then_some(metadata.len())
}

/// Inconsistency of the files with `TOC.txt` or with what Cassandra needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListFinding {
    /// False if Cassandra rebuilds the component or works without it.
    pub is_damage: bool,
    /// The missing component, or `TOC.txt`.
    pub component: Component,
    /// `sstable` or `toc`.
    pub structure: &'static str,
    /// Expected state.
    pub expected: String,
    /// Found state.
    pub found: String,
}

impl ListFinding {
    /// Inconsistency that is no damage.
    pub(crate) fn note(
        component: Component,
        structure: &'static str,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> ListFinding {
        ListFinding {
            is_damage: false,
            component,
            structure,
            expected: expected.into(),
            found: found.into(),
        }
    }
}

impl ComponentList {
    /// Looks up which of Cassandra's own components exist. The directory is not listed: it may have those of tens of
    /// thousands of SSTables.
    ///
    /// # Errors
    /// A file cannot be looked up.
    pub fn known(descriptor: &Descriptor) -> Result<ComponentList> {
        let mut present = Vec::new();
        for component in Component::ALL {
            let path = descriptor.path(component);
            let metadata = if_exists(std::fs::metadata(&path));
            if let Some(metadata) = metadata.map_err(Error::file("look up", path))? {
                present.push((component, metadata.len()));
            }
        }
        // There may be ten thousand such lists.
        present.shrink_to_fit();
        Ok(ComponentList {
            present,
            foreign: Vec::new(),
        })
    }

    /// Whether the component exists.
    pub fn has(&self, component: Component) -> bool {
        self.len_of(component).is_some()
    }

    /// Length of a component, bytes; `None` if it does not exist.
    pub fn len_of(&self, component: Component) -> Option<u64> {
        let of = self.present.iter().find(|(c, _)| *c == component);
        of.map(|(_, len)| *len)
    }

    /// Total length of all known components, bytes.
    pub fn total_len(&self) -> u64 {
        self.present.iter().map(|(_, len)| len).sum()
    }

    /// Missing components that Cassandra rebuilds or works without, each with the consequence.
    fn dispensable(
        &self,
        descriptor: &Descriptor,
        toc: Option<&Toc>,
        fp_chance: Option<f64>,
    ) -> Vec<(Component, &'static str)> {
        const REBUILT: &str = "Cassandra rebuilds it when it opens the table";
        let mut found = Vec::new();
        if descriptor.format() == Format::Big {
            found.push((Component::Summary, REBUILT));
        }
        // A table without Bloom filters has a false positive chance of 1.
        if fp_chance.is_some_and(|chance| chance != 1.0) {
            found.push((Component::Filter, REBUILT));
        }
        found.push((Component::Digest, "Data.db as a whole cannot be checked"));
        let is_compressed = self.has(Component::CompressionInfo)
            || toc.is_some_and(|toc| toc.contains(Component::CompressionInfo));
        if !is_compressed {
            found.push((
                Component::Crc,
                "the chunks of the uncompressed Data.db cannot be checked",
            ));
        }
        found
    }

    /// Reports components of `descriptor` that are missing or not listed. `toc` is the parsed `TOC.txt`, if
    /// it exists and could be parsed; `fp_chance` is the false positive chance in `Statistics.db`.
    pub fn check(
        &self,
        descriptor: &Descriptor,
        toc: Option<&Toc>,
        fp_chance: Option<f64>,
    ) -> Vec<ListFinding> {
        let mut findings = Vec::new();
        let missing = |component, expected: String| ListFinding {
            is_damage: true,
            ..ListFinding::note(component, "sstable", expected, "no such file")
        };
        let required: &[Component] = match descriptor.format() {
            Format::Big => &[Component::Data, Component::Index, Component::Statistics],
            Format::Bti => &[
                Component::Data,
                Component::Partitions,
                Component::Rows,
                Component::Statistics,
            ],
        };
        for &component in required {
            if !self.has(component) {
                let expected = format!("a file {component}, which every SSTable has");
                findings.push(missing(component, expected));
            }
        }
        if !self.has(Component::Toc) {
            let expected = "a file TOC.txt, which lists the files of the SSTable";
            let found = "no such file; Cassandra rebuilds it from the files that exist";
            findings.push(ListFinding::note(
                Component::Toc,
                "sstable",
                expected,
                found,
            ));
        }
        let is_listed = |component| toc.is_some_and(|toc| toc.contains(component));
        for (component, without) in self.dispensable(descriptor, toc, fp_chance) {
            if !self.has(component) {
                let expected = if is_listed(component) {
                    format!("a file {component}, which TOC.txt lists")
                } else {
                    format!("a file {component}")
                };
                let found = format!("no such file; {without}");
                findings.push(ListFinding::note(component, "sstable", expected, found));
            }
        }
        let Some(toc) = toc else {
            return findings;
        };
        // Without it, compressed data would be read as uncompressed (`CompressionInfoComponent`).
        const REQUIRED: Component = Component::CompressionInfo;
        if toc.contains(REQUIRED) && !self.has(REQUIRED) {
            let expected = format!("a file {REQUIRED}, which TOC.txt lists");
            findings.push(missing(REQUIRED, expected));
        }
        for listed in toc.unknown() {
            if len_of_other(descriptor, listed).is_none() {
                let expected = format!("a file {listed}, which TOC.txt lists");
                let found =
                    "no such file; Cassandra rebuilds the files of an index that are missing";
                findings.push(ListFinding::note(Component::Toc, "toc", expected, found));
            }
        }
        for &(present, _) in &self.present {
            if !toc.contains(present) {
                let expected = format!("a line {present}, since that file exists");
                let found = toc.names.join(", ");
                findings.push(ListFinding::note(Component::Toc, "toc", expected, found));
            }
        }
        findings
    }
}
