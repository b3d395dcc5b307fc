//! Clusterings that compare equal but differ in their bytes, in merges of files.

use std::path::{Path, PathBuf};

use compactor_engine::input::Scan;
use compactor_io::ReadMode;
use compactor_sstable::Component;
use compactor_testkit::machine::disk_directory;

use crate::files::{io, key_value_source, merge_files, options, write_sstable};
use compactor_testkit::model::decode::decode;
use compactor_testkit::model::table::{
    Base, ClusteringColumn, Column, ColumnType, Schema, Unfiltered,
};

/// The number 5 in several forms.
const FORMS: [&[u8]; 3] = [&[5], &[0, 5], &[0, 0, 5]];

fn schema() -> Schema {
    Schema {
        clustering: vec![ClusteringColumn {
            base: Base::Varint,
            is_reversed: false,
        }],
        columns: vec![Column {
            name: b"v".to_vec(),
            column_type: ColumnType::Simple(Base::Blob),
            is_static: false,
        }],
    }
}

/// Writes an SSTable of one row, whose clustering is 5 in this form.
fn write(directory: &Path, id: u32, form: usize) -> PathBuf {
    let mut source = key_value_source(u64::from(id), 1..2, 4);
    for partition in source.table.values_mut() {
        for unfiltered in &mut partition.unfiltereds {
            if let Unfiltered::Row { clustering, .. } = unfiltered {
                *clustering = vec![Some(FORMS[form].to_vec())];
            }
        }
    }
    write_sstable(directory, id, &schema(), &source, None).unwrap()
}

/// Returns the clustering that a merge keeps, and the number of passes.
fn merged(inputs: &[PathBuf], output: &Path, open_files: Option<u64>) -> (Vec<u8>, usize) {
    let mut options = options(inputs, output);
    options.open_files = open_files;
    let outcome = merge_files(&io(), options).unwrap();
    let data = outcome.outputs[0].descriptor.path(Component::Data);
    let mut scan = Scan::open(&io(), &data, ReadMode::Buffered).unwrap();
    let table = decode(&schema(), scan.cursor()).unwrap();
    let kept = table.values().flat_map(|partition| &partition.unfiltereds);
    let kept = kept.map(|unfiltered| match unfiltered {
        Unfiltered::Row { clustering, .. } => clustering[0].clone().unwrap(),
        Unfiltered::Marker { .. } => panic!("a marker"),
    });
    let kept: Vec<Vec<u8>> = kept.collect();
    assert_eq!(kept.len(), 1);
    (kept[0].clone(), outcome.passes)
}

/// Of two inputs, the one whose hash selects the later of sixteen buckets is visited last. Consecutive ids
/// select sixteen pairs of buckets, in either order.
#[test]
fn ids_decide_in_one_pass() {
    let directory = disk_directory();
    let mut of_newer = 0;
    for id in 1..17 {
        let place = directory.path().join(id.to_string());
        let inputs = place.join("ks/t-0123456789abcdef0123456789abcdef");
        let paths = [write(&inputs, id, 1), write(&inputs, id + 1, 0)];
        let (kept, passes) = merged(&paths, &place.join("output"), None);
        assert_eq!(passes, 1);
        // The order of paths, and another directory of the same table, do not matter.
        let copy = place.join("other/ks/t-0123456789abcdef0123456789abcdef");
        let copies = [write(&copy, id + 1, 0), write(&copy, id, 1)];
        assert_eq!(merged(&copies, &place.join("again"), None).0, kept);
        of_newer += usize::from(kept == FORMS[0]);
    }
    assert!((1..16).contains(&of_newer), "{of_newer} of 16");
}

#[test]
fn the_least_bytes_are_kept_in_passes() {
    let directory = disk_directory();
    for id in 1..5 {
        let place = directory.path().join(id.to_string());
        let inputs = place.join("ks/t-0123456789abcdef0123456789abcdef");
        let paths: Vec<PathBuf> = (0..5)
            .map(|n| write(&inputs, id + n as u32, [2, 1, 2, 2, 1][n]))
            .collect();
        let (kept, passes) = merged(&paths, &place.join("output"), Some(0));
        assert!(passes > 1, "{passes} passes");
        // Their lengths come first.
        assert_eq!(kept, FORMS[1]);
    }
}
