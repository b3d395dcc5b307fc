//! Findings of a verification: contradictions within an SSTable, or with the format.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::{Component, Error as FormatError, Version};
use serde::{Serialize, Serializer};

/// Maximum number of findings listed per structure, so that a common one does not hide the rest.
const LISTED_PER_STRUCTURE: u64 = 20;
/// Damaged chunks are limited only by the total: each is a different position on disk.
const UNLIMITED_STRUCTURE: &str = "chunk";

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Data is lost, wrong or hidden from reads, or a file differs from the one written.
    Damage,
    /// Unusual, but no cause of data loss in Cassandra.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Severity::Damage => "damage",
            Severity::Note => "note",
        })
    }
}

/// A contradiction within an SSTable or with the format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// Severity.
    pub severity: Severity,
    /// Component that is wrong or contradicts the others.
    #[serde(serialize_with = "as_text")]
    pub component: Component,
    /// Its file. In JSON, bytes that are not UTF-8 are replaced.
    #[serde(serialize_with = "crate::sstable_report::lossy")]
    pub path: PathBuf,
    /// Byte offset in the file, if known.
    pub offset: Option<u64>,
    /// Position in the uncompressed content of `Data.db`, if known.
    pub position: Option<u64>,
    /// Dotted name of the structure, such as `index.position`.
    pub structure: String,
    /// Value required by the format or the other components.
    pub expected: String,
    /// Value found.
    pub found: String,
    /// Key of the partition, if the finding concerns one.
    pub partition: Option<String>,
    /// Whether a merge refuses the SSTable for it. Damage in components that only locate rows, such as filter and
    /// summary, does not stop a merge, which reads all of `Data.db`.
    pub stops_merge: bool,
}

fn as_text<S: Serializer>(component: &Component, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(component.file_suffix())
}

impl Finding {
    /// Formats the location, the structure, and the expected and found values.
    pub fn statement(&self) -> String {
        let mut text = format!("{}: {}", self.path.display(), self.structure);
        if let Some(offset) = self.offset {
            text += &format!(" at offset {offset}");
        }
        if let Some(position) = self.position {
            text += &format!(" at position {position} of the uncompressed data");
        }
        if let Some(partition) = &self.partition {
            text += &format!(" (partition {partition})");
        }
        text + &format!(": expected {}, found {}", self.expected, self.found)
    }
}

impl Finding {
    /// The error of a run that the finding stops.
    pub fn to_error(&self) -> FormatError {
        // An offset in the file is not a position in its content: see `Corruption::is_in_content`.
        let structure = match self.position {
            None if self.component == Component::Data => "data",
            _ => "component",
        };
        FormatError::corrupt(
            structure,
            self.position.or(self.offset).unwrap_or(0),
            format!("{}: {}", self.structure, self.expected),
            self.found.clone(),
        )
        .with_file(&self.path, self.component)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity, self.statement())
    }
}

/// Location of a finding.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    component: Component,
    offset: Option<u64>,
    position: Option<u64>,
    partition: Option<String>,
}

impl Location {
    /// Location of a component as a whole.
    pub(crate) fn of(component: Component) -> Location {
        Location {
            component,
            offset: None,
            position: None,
            partition: None,
        }
    }

    /// Location at a byte offset of a component's file.
    pub(crate) fn offset(component: Component, offset: u64) -> Location {
        Location {
            offset: Some(offset),
            ..Location::of(component)
        }
    }

    /// Location at a position of the uncompressed data.
    pub(crate) fn position(position: u64) -> Location {
        Location {
            position: Some(position),
            ..Location::of(Component::Data)
        }
    }

    /// Adds the key of the partition.
    pub(crate) fn in_partition(mut self, key: impl Into<String>) -> Location {
        self.partition = Some(key.into());
        self
    }
}

/// Collects findings, lists the first and counts all.
#[derive(Debug)]
pub(crate) struct Findings {
    descriptor: Descriptor,
    limit: usize,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    listed: Vec<Finding>,
    by_structure: BTreeMap<(Component, String), u64>,
    damages: u64,
    notes: u64,
    damaged: Vec<Component>,
    /// Number of damage findings that stop a merge.
    stopping: u64,
    /// First finding that stops a merge, listed or not.
    first_to_stop: Option<Finding>,
}

/// Returns true if a merge refuses an SSTable for damage of this kind, unless [`Findings::ignored_by_merge`] records it.
/// A merge writes its own index, filter and summary, and reads those of the inputs only for split points and, before
/// `oa`, for the first and last partition.
fn stops_merge(component: Component, structure: &str, version: Version) -> bool {
    match component {
        // A required component is missing.
        _ if structure == "sstable" => true,
        Component::Filter | Component::Crc => false,
        // A merge looks up no key. The rest has no reader: since `da` the keys are in `Statistics.db` as well, and
        // the number is for estimates.
        Component::Partitions => ![
            "index.key",
            "partition_index.first_key",
            "partition_index.last_key",
            "partition_index.key_count",
        ]
        .contains(&structure),
        Component::Summary => {
            let is_key = ["summary.first_key", "summary.last_key"].contains(&structure);
            is_key && !version.has_key_range()
        }
        // Index entries, which locate partitions, have names that begin with `index.`; others are of promoted
        // indexes.
        Component::Index => structure.starts_with("index."),
        Component::Rows => {
            let of_entry = [
                "row_index.entry",
                "row_index.data_position",
                "row_index.key",
            ];
            let is_of_entry = structure.starts_with("index.") && structure != "index.key";
            is_of_entry || of_entry.contains(&structure)
        }
        _ => true,
    }
}

impl Findings {
    pub(crate) fn new(descriptor: Descriptor, limit: usize) -> Findings {
        Findings {
            descriptor,
            limit,
            state: RefCell::default(),
        }
    }

    /// Returns the path of a component.
    pub(crate) fn path(&self, component: Component) -> PathBuf {
        self.descriptor.path(component)
    }

    /// Records a finding.
    pub(crate) fn add(
        &self,
        severity: Severity,
        place: Location,
        structure: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        let stops_merge = severity == Severity::Damage
            && stops_merge(place.component, structure, self.descriptor.version);
        let texts = [expected.into(), found.into()];
        self.enter(severity, place, structure, texts, stops_merge);
    }

    fn enter(
        &self,
        severity: Severity,
        place: Location,
        structure: &str,
        [expected, found]: [String; 2],
        stops_merge: bool,
    ) {
        let mut state = self.state.borrow_mut();
        match severity {
            Severity::Damage => state.damages += 1,
            Severity::Note => state.notes += 1,
        }
        if severity == Severity::Damage && !state.damaged.contains(&place.component) {
            state.damaged.push(place.component);
        }
        state.stopping += u64::from(stops_merge);
        let kind = (place.component, structure.to_owned());
        let of_kind = state.by_structure.entry(kind).or_default();
        *of_kind += 1;
        let is_listed =
            *of_kind <= LISTED_PER_STRUCTURE || structure.starts_with(UNLIMITED_STRUCTURE);
        let is_listed = is_listed && state.listed.len() < self.limit;
        let is_first_to_stop = stops_merge && state.stopping == 1;
        if !is_listed && !is_first_to_stop {
            return;
        }
        let finding = Finding {
            severity,
            component: place.component,
            path: self.descriptor.path(place.component),
            offset: place.offset,
            position: place.position,
            structure: structure.to_owned(),
            expected,
            found,
            partition: place.partition,
            stops_merge,
        };
        if is_first_to_stop {
            state.first_to_stop = Some(finding.clone());
        }
        if is_listed {
            state.listed.push(finding);
        }
    }

    /// Records damage.
    pub(crate) fn damage(
        &self,
        place: Location,
        structure: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        self.add(Severity::Damage, place, structure, expected, found);
    }

    /// Records damage that stops no merge, which copies what is damaged, or writes its own.
    pub(crate) fn ignored_by_merge(
        &self,
        place: Location,
        structure: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        let texts = [expected.into(), found.into()];
        self.enter(Severity::Damage, place, structure, texts, false);
    }

    /// Records a note.
    pub(crate) fn note(
        &self,
        place: Location,
        structure: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        self.add(Severity::Note, place, structure, expected, found);
    }

    /// Records that a field of `Statistics.db` is wrong.
    pub(super) fn statistics(
        &self,
        severity: Severity,
        field: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        let place = Location::of(Component::Statistics);
        self.add(severity, place, &format!("stats.{field}"), expected, found);
    }

    /// Records that a field of `Statistics.db` is wrong that a merge does not read.
    pub(super) fn unread_statistics(
        &self,
        field: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        let place = Location::of(Component::Statistics);
        self.ignored_by_merge(place, &format!("stats.{field}"), expected, found);
    }

    /// Records the error of a component's parser.
    pub(crate) fn parser(&self, component: Component, error: &FormatError) {
        match error {
            FormatError::Corrupt(c) => {
                let place = Location::offset(component, c.offset);
                let stops_merge = match component {
                    // An unreadable summary is replaced by reading the index.
                    Component::Summary => false,
                    // A node reads it, even if it does not use all of it; and so does a merge.
                    Component::Partitions => true,
                    _ => stops_merge(component, c.structure, self.descriptor.version),
                };
                let (expected, found) = (c.expected.clone(), c.found.clone());
                self.enter(
                    Severity::Damage,
                    place,
                    c.structure,
                    [expected, found],
                    stops_merge,
                );
            }
            other => {
                let known = "something that this release reads";
                self.damage(Location::of(component), "content", known, other.to_string());
            }
        }
    }

    /// Returns the number of damage findings so far.
    pub(crate) fn damages(&self) -> u64 {
        self.state.borrow().damages
    }

    /// Returns true if damage was found in the component.
    pub(crate) fn is_damaged(&self, component: Component) -> bool {
        self.state.borrow().damaged.contains(&component)
    }

    /// Returns true if any damage was found that stops a merge.
    pub(super) fn stop_merge(&self) -> bool {
        self.state.borrow().stopping > 0
    }

    /// Returns the first damage that stops a merge.
    pub(super) fn first_to_stop(&self) -> Option<Finding> {
        self.state.borrow().first_to_stop.clone()
    }

    /// Returns the listed findings, damage before notes, and the numbers of damages and notes found.
    pub(crate) fn finish(self) -> (Vec<Finding>, u64, u64) {
        let mut state = self.state.into_inner();
        state.listed.sort_by_key(|finding| finding.severity);
        (state.listed, state.damages, state.notes)
    }
}
