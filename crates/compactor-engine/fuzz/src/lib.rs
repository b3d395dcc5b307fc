//! Fuzz harness: merges of tables chosen by the fuzzer, compared with the naive model of the engine's tests.
//!
//! The bytes are not an SSTable: each choice of the generator of random tables (schema, versions, rows,
//! deletions, times, purge limits) consumes some of them. So every input is a valid case, and coverage guides
//! the fuzzer through the merge instead of the parsers.
#![expect(
    clippy::unwrap_used,
    dead_code,
    unused_imports,
    reason = "these modules are shared with the tests, which use more of them"
)]

#[path = "../../tests/it/against_the_model.rs"]
mod against_the_model;
#[path = "../../tests/it/case.rs"]
mod case;
#[path = "../../tests/it/choices.rs"]
mod choices;
#[path = "../../tests/it/counters.rs"]
mod counters;
#[path = "../../tests/it/decode.rs"]
mod decode;
#[path = "../../tests/it/encode.rs"]
mod encode;
#[path = "../../tests/it/engine.rs"]
mod engine;
#[path = "../../tests/it/expected_statistics.rs"]
mod expected_statistics;
#[path = "../../tests/it/generate.rs"]
mod generate;
#[path = "../../tests/it/model.rs"]
mod model;
#[path = "../../tests/it/order.rs"]
mod order;
#[path = "../../tests/it/promoted.rs"]
mod promoted;
#[path = "../../tests/it/stored.rs"]
mod stored;
#[path = "../../tests/it/table.rs"]
mod table;

/// Merges the case that these bytes choose.
///
/// # Panics
/// If the engine's output differs from the model's.
pub fn merge(data: &[u8]) {
    let case = case::case(&mut choices::Choices::from_bytes(data), 6);
    if let Err(message) = against_the_model::merge_equals_the_model(&case) {
        panic!("{case:?}\n{message}");
    }
}
