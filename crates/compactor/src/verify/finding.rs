//! What a verification finds: places where an SSTable contradicts itself or the format.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::{Component, Error as FormatError, Version};
use serde::{Serialize, Serializer};

/// Findings of one kind that are listed: what is wrong everywhere must not hide the rest.
const LISTED_PER_STRUCTURE: u64 = 20;
/// Damaged chunks are listed as far as the total allows: each is a different place on the disk.
const UNLIMITED_STRUCTURE: &str = "chunk";

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Data is lost, wrong or hidden from reads, or a file is not what was written.
    Damage,
    /// Unusual, but nothing that Cassandra would lose data by.
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

/// One contradiction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The component that is wrong, or that does not fit the others.
    #[serde(serialize_with = "as_text")]
    pub component: Component,
    /// Its file. In JSON, bytes that are not UTF-8 are replaced.
    #[serde(serialize_with = "crate::report::lossy")]
    pub path: PathBuf,
    /// Byte offset in the file, where one is known.
    pub offset: Option<u64>,
    /// Position in the uncompressed content of `Data.db`, where one is known.
    pub position: Option<u64>,
    /// Dotted name of the structure, such as `index.position`.
    pub structure: String,
    /// What the format or the other components ask for.
    pub expected: String,
    /// What is there.
    pub found: String,
    /// Key of the partition, if it is one's.
    pub partition: Option<String>,
    /// A merge refuses the SSTable for it. It goes on without what only leads to rows, such as filter and
    /// summary: it reads all of `Data.db`.
    pub stops_merge: bool,
}

fn as_text<S: Serializer>(component: &Component, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(component.file_suffix())
}

impl Finding {
    /// Place, structure, and what was expected and found.
    pub(crate) fn statement(&self) -> String {
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

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity, self.statement())
    }
}

/// Where something was found.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    component: Component,
    offset: Option<u64>,
    position: Option<u64>,
    partition: Option<String>,
}

impl Place {
    /// Somewhere in, or about, a component.
    pub(crate) fn of(component: Component) -> Place {
        Place {
            component,
            offset: None,
            position: None,
            partition: None,
        }
    }

    /// At a byte offset of a component's file.
    pub(crate) fn offset(component: Component, offset: u64) -> Place {
        Place {
            offset: Some(offset),
            ..Place::of(component)
        }
    }

    /// At a position of the uncompressed data.
    pub(crate) fn position(position: u64) -> Place {
        Place {
            position: Some(position),
            ..Place::of(Component::Data)
        }
    }

    /// In the partition with this key.
    pub(crate) fn in_partition(mut self, key: impl Into<String>) -> Place {
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
    /// Damage for which a merge stops.
    stopping: u64,
    /// The first of it, listed or not.
    first_to_stop: Option<Finding>,
}

/// True if a merge refuses an SSTable for damage of this kind. It writes an index, a filter and a summary of its own,
/// and reads none of the inputs' but to find out where an input may be cut, and before `oa` which partitions it is
/// among.
fn stops_merge(component: Component, structure: &str, version: Version) -> bool {
    match component {
        // One without which there is no SSTable is missing.
        _ if structure == "sstable" => true,
        Component::Filter | Component::Crc => false,
        // Only reads of slices go by them.
        Component::Statistics => ![
            "stats.covered_clustering.start",
            "stats.covered_clustering.end",
            "stats.has_partition_level_deletions",
        ]
        .contains(&structure),
        Component::CompressionInfo => structure != "compression_info.max_compressed_length",
        // A merge looks up no key. Nobody asks for the rest: since `da` the keys are in `Statistics.db` as well, and
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
        // Of a partition's own index: entries, which say where partitions are, have names that begin with `index.`.
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

    /// Path of a component.
    pub(crate) fn path(&self, component: Component) -> PathBuf {
        self.descriptor.path(component)
    }

    /// Enters a finding.
    pub(crate) fn add(
        &self,
        severity: Severity,
        place: Place,
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
        place: Place,
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

    /// Enters damage.
    pub(crate) fn damage(
        &self,
        place: Place,
        structure: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        self.add(Severity::Damage, place, structure, expected, found);
    }

    /// Enters a note.
    pub(crate) fn note(
        &self,
        place: Place,
        structure: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) {
        self.add(Severity::Note, place, structure, expected, found);
    }

    /// Enters what a parser of a component's file said.
    pub(crate) fn parser(&self, component: Component, error: &FormatError) {
        match error {
            FormatError::Corrupt(c) => {
                let place = Place::offset(component, c.offset);
                let stops_merge = match component {
                    // Instead of a summary that cannot be read the index is.
                    Component::Summary => false,
                    // What a node reads, though it may not use it.
                    Component::Partitions | Component::CompressionInfo => true,
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
                self.damage(Place::of(component), "content", known, other.to_string());
            }
        }
    }

    /// Damage found so far.
    pub(crate) fn damages(&self) -> u64 {
        self.state.borrow().damages
    }

    /// True if damage was found in the component.
    pub(crate) fn is_damaged(&self, component: Component) -> bool {
        self.state.borrow().damaged.contains(&component)
    }

    /// True if any damage was found for which a merge stops.
    pub(super) fn stop_merge(&self) -> bool {
        self.state.borrow().stopping > 0
    }

    /// The first damage for which a merge stops.
    pub(super) fn first_to_stop(&self) -> Option<Finding> {
        self.state.borrow().first_to_stop.clone()
    }

    /// The findings listed, damage before notes, and the numbers of damages and notes found.
    pub(crate) fn finish(self) -> (Vec<Finding>, u64, u64) {
        let mut state = self.state.into_inner();
        state.listed.sort_by_key(|finding| finding.severity);
        (state.listed, state.damages, state.notes)
    }
}
