//! Fuzz harness: merges of tables chosen by the fuzzer, compared with the naive model of the engine's tests.
//!
//! The bytes are not an SSTable: each choice of the generator of random tables (schema, versions, rows,
//! deletions, times, purge limits) consumes some of them. So every input is a valid case, and coverage guides
//! the fuzzer through the merge instead of the parsers.

use compactor_testkit::model::case::case;
use compactor_testkit::model::choices::Choices;
use compactor_testkit::model::comparison::merge_equals_the_model;

/// Merges the case that these bytes choose.
///
/// # Panics
/// If the engine's output differs from the model's.
pub fn merge(data: &[u8]) {
    let case = case(&mut Choices::from_bytes(data), 6);
    if let Err(message) = merge_equals_the_model(&case) {
        panic!("{case:?}\n{message}");
    }
}
