//! Inputs of several repair states in one `compactor merge`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::statistics::Statistics;

use crate::support::{compactor, data_files, flip_middle, generated, json, stdout, words_and};

/// Three generated SSTables, of which the second is repaired.
fn generate(place: &Path) -> Vec<PathBuf> {
    let inputs = data_files(&generated(place, &["--rows", "300"]));
    assert_eq!(inputs.len(), 3);
    let descriptor = Descriptor::parse(&inputs[1]).unwrap().descriptor;
    let path = descriptor.path(Component::Statistics);
    let mut statistics = Statistics::parse(&fs::read(&path).unwrap(), descriptor.version).unwrap();
    statistics.stats.repaired_at = 1_700_000_000_000;
    let mut bytes = Vec::new();
    statistics.write(&mut bytes, descriptor.version).unwrap();
    fs::write(&path, bytes).unwrap();
    inputs
}

fn merge(place: &Path, inputs: &[PathBuf], more: &[&str]) -> Output {
    let mut args = words_and("merge --complete --progress none --output out", more);
    args.extend(inputs.iter().map(|input| input.to_str().unwrap()));
    compactor(place, &args)
}

#[test]
fn an_output_for_each_state() {
    let temp = tempfile::tempdir().unwrap();
    let inputs = generate(temp.path());
    let plan = merge(temp.path(), &inputs, &["--dry-run", "--format", "json"]);
    let plan = json(&plan);
    assert_eq!(plan["groups"][0]["repair"], "unrepaired");
    assert_eq!(plan["groups"][1]["repair"], "repaired");

    let merged = merge(temp.path(), &inputs, &["--verify", "--format", "json"]);
    let report = json(&merged);
    let groups = report["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    assert_eq!(report["outputs"].as_array().unwrap().len(), 2);
    let mut outputs = Vec::new();
    for (group, (state, inputs, repaired_at)) in groups
        .iter()
        .zip([("unrepaired", 2, 0), ("repaired", 1, 1_700_000_000_000_i64)])
    {
        assert_eq!(group["repair"]["state"], state);
        assert_eq!(group["inputs"].as_array().unwrap().len(), inputs);
        assert_eq!(
            group["repair"]["repaired_at_ms"].as_i64().unwrap_or(0),
            repaired_at
        );
        let data = group["outputs"][0]["data_path"].as_str().unwrap();
        let data = temp.path().join(data);
        let descriptor = Descriptor::parse(&data).unwrap().descriptor;
        let bytes = fs::read(descriptor.path(Component::Statistics)).unwrap();
        let statistics = Statistics::parse(&bytes, descriptor.version).unwrap();
        assert_eq!(statistics.stats.repaired_at, repaired_at);
        outputs.push(data);
    }
    assert_ne!(outputs[0], outputs[1]);
    assert_eq!(
        report["rows_read"].as_u64().unwrap(),
        groups[0]["rows_read"].as_u64().unwrap() + groups[1]["rows_read"].as_u64().unwrap()
    );
}

#[test]
fn the_text_has_a_part_for_each() {
    let temp = tempfile::tempdir().unwrap();
    let inputs = generate(temp.path());
    let merged = merge(temp.path(), &inputs, &[]);
    let text = stdout(&merged);
    assert!(
        text.starts_with("unrepaired:\nmerged 2 SSTables into "),
        "{text}"
    );
    assert!(
        text.contains("\nrepaired:\nmerged 1 SSTable into "),
        "{text}"
    );
}

/// The unrepaired SSTables are merged first: their output is complete when damage is found in the other
/// group, and must not be published.
#[test]
fn damage_in_one_state_leaves_no_output_of_any() {
    let temp = tempfile::tempdir().unwrap();
    let inputs = generate(temp.path());
    flip_middle(&inputs[1]);
    let merged = merge(temp.path(), &inputs, &[]);
    assert_eq!(merged.status.code(), Some(3), "{merged:?}");
    assert!(!temp.path().join("out").exists());
}
