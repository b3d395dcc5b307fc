//! The harness over bytes of many lengths, on a stable toolchain, so that it keeps working between runs of
//! the fuzzer.

use compactor_testkit::Random;

/// Up to enough choices for the largest tables; after the bytes every choice is the simplest.
const LENGTHS: [usize; 6] = [0, 1, 64, 512, 4096, 16384];

#[test]
fn bytes_of_many_lengths() {
    for length in LENGTHS {
        for seed in 0..20_u64 {
            compactor_engine_fuzz::merge(&Random::new(seed).bytes(length));
        }
    }
}
