//! Merges of random tables against the naive model: bytes, index, statistics and counts.

use compactor_testkit::model::case::{Case, case};
use compactor_testkit::model::choices::{Choices, check};
use compactor_testkit::model::comparison::{merge_equals_the_model, same_partitions};

/// Reading an input returns the table that was written, from which the model starts.
#[test]
fn inputs_are_read_as_they_were_written() {
    let verify = |case: &Case| {
        for source in &case.sources {
            let input = source.input(&case.schema);
            let found = case.read(&source.header, &input.bytes, input.block_len)?;
            same_partitions(case, &source.stored(), &found)?;
        }
        Ok(())
    };
    check(
        "reading",
        250,
        |choices| case(choices, 1),
        verify,
        Case::simpler,
    );
}

/// The main property: the engine's output equals the model's.
#[test]
fn merges_equal_the_model() {
    check(
        "merges",
        600,
        |choices| case(choices, 6),
        merge_equals_the_model,
        Case::simpler,
    );
}

/// Cases chosen by bytes, as by a fuzzer.
#[test]
fn merges_chosen_by_bytes() {
    for length in [0, 1, 50, 500, 5000] {
        let bytes: Vec<u8> = (0..length).map(|n: u32| (n * n / 3) as u8).collect();
        let case = case(&mut Choices::from_bytes(&bytes), 6);
        merge_equals_the_model(&case).unwrap();
    }
}
