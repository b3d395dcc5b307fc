//! Ways in which an SSTable is changed.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use compactor_sstable::Component;
use compactor_sstable::statistics::Statistics;
use serde::Serialize;

use super::sstable_files::SstableFiles;
use crate::files;
use compactor_testkit::Random;

/// Change of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Nothing.
    Nothing,
    /// Removed, but still listed in `TOC.txt`.
    Missing,
    /// Removed with its line in `TOC.txt`.
    MissingAndUnlisted,
    /// Bytes were appended.
    Appended,
    /// Bytes at its end were cut off.
    CutOff,
    /// A bit was flipped.
    Flipped,
    /// Some bytes were overwritten.
    Overwritten,
    /// Flipped or overwritten, with checksums recomputed.
    Mended,
    /// Replaced by that of another SSTable of the table.
    Exchanged,
    /// A field of `Statistics.db` was changed.
    Field,
    /// Text edited as people and other tools do.
    Text,
}

/// One change.
#[derive(Debug, Clone)]
pub struct Change {
    /// Description of the change.
    pub kind: Kind,
    /// The changed component.
    pub component: Component,
    /// Details.
    pub detail: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {}", self.component, self.kind, self.detail)
    }
}

impl Change {
    /// Makes a random change. `others` are SSTables of the same table.
    pub(super) fn make(rng: &mut Random, files: &SstableFiles, others: &[&Path]) -> Result<Change> {
        let mut component = *rng.pick(&files.components());
        if component == Component::Data && rng.one_in(2) {
            // Most changes of Data.db are found by a checksum.
            component = Component::Statistics;
        }
        let kind = *rng.pick(&[
            Kind::Missing,
            Kind::MissingAndUnlisted,
            Kind::Appended,
            Kind::CutOff,
            Kind::Flipped,
            Kind::Flipped,
            Kind::Overwritten,
            Kind::Mended,
            Kind::Mended,
            Kind::Exchanged,
            Kind::Field,
            Kind::Text,
        ]);
        let len = files.read(component)?.len();
        let detail = match kind {
            Kind::Nothing => String::new(),
            Kind::Missing | Kind::MissingAndUnlisted if component == Component::Data => {
                return Change::in_place(rng, files, Component::Statistics, Kind::Mended);
            }
            Kind::Missing => {
                files.remove(component)?;
                String::new()
            }
            Kind::MissingAndUnlisted => {
                if component != Component::Toc {
                    files.edit_toc(|lines| lines.retain(|line| line != component.file_suffix()))?;
                }
                files.remove(component)?;
                String::new()
            }
            Kind::Appended => {
                let count = 1 + rng.index(12);
                let byte = *rng.pick(&[0, 0xff, b'\n', b'7', 0x80]);
                files.edit(component, |bytes| bytes.resize(len + count, byte))?;
                format!("{count} bytes {byte:02x}")
            }
            Kind::CutOff => {
                let left = match rng.below(3) {
                    0 => 0,
                    1 => len.saturating_sub(1),
                    _ => rng.index(len.max(1)),
                };
                files.edit(component, |bytes| bytes.truncate(left))?;
                format!("{left} bytes left of {len}")
            }
            Kind::Exchanged => {
                let sources: Vec<_> = others
                    .iter()
                    .filter_map(|data| {
                        std::fs::read(files::component(data, component.file_suffix())).ok()
                    })
                    .collect();
                if sources.is_empty() {
                    return Change::in_place(rng, files, component, Kind::Flipped);
                }
                let bytes = rng.pick(&sources);
                files.write(component, bytes)?;
                String::new()
            }
            Kind::Field => {
                component = Component::Statistics;
                field(rng, files)?
            }
            Kind::Text => {
                component = *rng.pick(&[Component::Toc, Component::Digest]);
                text(rng, files, component)?
            }
            Kind::Flipped | Kind::Overwritten | Kind::Mended => {
                return Change::in_place(rng, files, component, kind);
            }
        };
        Ok(Change {
            kind,
            component,
            detail,
        })
    }

    /// Flips or overwrites some bits or bytes, at any position.
    fn in_place(
        rng: &mut Random,
        files: &SstableFiles,
        component: Component,
        kind: Kind,
    ) -> Result<Change> {
        let len = files.read(component)?.len();
        let mut detail = String::new();
        if len > 0 {
            let at = rng.index(len);
            let count = match kind {
                Kind::Overwritten => 1 + rng.index(8),
                _ => 1,
            };
            let mask = 1 << rng.below(8);
            let byte = *rng.pick(&[0, 1, 0x7f, 0x80, 0xff]);
            let is_flipped = kind == Kind::Flipped || rng.one_in(2);
            files.edit(component, |bytes| {
                for target in bytes.iter_mut().skip(at).take(count) {
                    *target = if is_flipped { *target ^ mask } else { byte };
                }
            })?;
            detail = if is_flipped {
                format!("{count} bytes at {at} of {len}, mask {mask:02x}")
            } else {
                format!("{count} bytes at {at} of {len} to {byte:02x}")
            };
        }
        if kind == Kind::Mended {
            match component {
                Component::Statistics => files.mend_statistics()?,
                Component::Data => files.mend_data()?,
                _ => {}
            }
        }
        Ok(Change {
            kind,
            component,
            detail,
        })
    }
}

type Edit = fn(&mut Statistics);

fn field(rng: &mut Random, files: &SstableFiles) -> Result<String> {
    let edits: [(&str, Edit); 16] = [
        ("total_rows + 1", |s| s.stats.total_rows += 1),
        ("total_rows - 1", |s| s.stats.total_rows -= 1),
        ("total_columns_set", |s| s.stats.total_columns_set += 7),
        ("compression_ratio", |s| s.stats.compression_ratio *= 1.5),
        ("compression_ratio nan", |s| {
            s.stats.compression_ratio = f64::NAN
        }),
        ("min_timestamp - 1", |s| {
            s.stats.min_timestamp = s.stats.min_timestamp.saturating_sub(1)
        }),
        ("max_timestamp + 1", |s| {
            s.stats.max_timestamp = s.stats.max_timestamp.saturating_add(1)
        }),
        ("max_timestamp - 1", |s| {
            s.stats.max_timestamp = s.stats.max_timestamp.saturating_sub(1)
        }),
        ("min_local_deletion_time", |s| {
            s.stats.min_local_deletion_time = 0
        }),
        ("max_ttl", |s| {
            s.stats.max_ttl = s.stats.max_ttl.saturating_add(1000)
        }),
        ("level", |s| s.stats.level = 3),
        ("repaired_at", |s| s.stats.repaired_at = 1_600_000_000_000),
        ("partition_sizes", |s| s.stats.partition_sizes.add(3)),
        ("cells_per_partition", |s| {
            s.stats.cells_per_partition.add(3)
        }),
        ("fp_chance", |s| s.validation.bloom_filter_fp_chance = 0.3),
        ("no cardinality", |s| s.compaction = None),
    ];
    let (name, edit) = *rng.pick(&edits);
    let version = files.descriptor().version;
    let mut statistics = Statistics::parse(&files.read(Component::Statistics)?, version)?;
    edit(&mut statistics);
    let mut bytes = Vec::new();
    statistics.write(&mut bytes, version)?;
    files.write(Component::Statistics, &bytes)?;
    Ok(name.to_owned())
}

fn text(rng: &mut Random, files: &SstableFiles, component: Component) -> Result<String> {
    if component == Component::Digest {
        let digits = String::from_utf8(files.read(component)?)?;
        let made = match rng.below(5) {
            0 => format!("{digits}\n"),
            1 => format!("{digits}\r\nData.db"),
            2 => format!("000{digits}"),
            3 => format!("+{digits}"),
            _ => format!("{digits} "),
        };
        files.write(component, made.as_bytes())?;
        return Ok(format!("{made:?}"));
    }
    let at = rng.index(3);
    let what = rng.below(6);
    let mut found = None;
    files.edit_toc(|lines| {
        let names = [
            "Data.db",
            "SAI+ba+Meta.db",
            "",
            "Custom.db",
            "a/b",
            "../Data.db",
        ];
        match what {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, names[at].to_owned()),
            2 => lines.push(names[3 + at].to_owned()),
            3 => lines.reverse(),
            4 => lines.iter_mut().for_each(|line| line.push('\r')),
            _ => lines.clear(),
        }
        found = Some(format!("{what} at {at}"));
    })?;
    found.context("no text")
}
