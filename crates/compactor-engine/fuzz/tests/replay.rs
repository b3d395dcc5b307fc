//! The harness over bytes of many lengths, on a stable toolchain, so that it keeps working between runs of
//! the fuzzer.

/// Up to enough choices for the largest tables; after the bytes every choice is the simplest.
const LENGTHS: [usize; 6] = [0, 1, 64, 512, 4096, 16384];

#[test]
fn bytes_of_many_lengths() {
    for length in LENGTHS {
        for seed in 0..20_u64 {
            let mut state = seed;
            let bytes: Vec<u8> = (0..length)
                .map(|_| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    (state >> 56) as u8
                })
                .collect();
            compactor_engine_fuzz::merge(&bytes);
        }
    }
}
