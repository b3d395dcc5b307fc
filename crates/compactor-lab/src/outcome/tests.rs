use super::*;

/// The document that reports are tested with, with invented figures.
const EXAMPLE: &str = include_str!("../../tests/data/outcome.json");

#[test]
fn a_document_is_read_back_as_it_was_written() {
    let outcome: Outcome = serde_json::from_str(EXAMPLE).unwrap();
    assert_eq!(outcome.header.format_version, FORMAT_VERSION);
    let text = serde_json::to_string(&outcome).unwrap();
    assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap(), outcome);
    let point = &outcome.points[0];
    let direct: Arm = "direct/direct".parse().unwrap();
    let all = point.runs.iter().filter(|run| run.arm == direct).count();
    // One is a warm-up, and one is invalid.
    assert_eq!((all, Outcome::counted(point, direct).count()), (4, 2));
}
