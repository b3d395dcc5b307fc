//! Rounding of offsets and lengths, and the alignment that direct I/O on a file requires.

/// Alignment of buffers, bytes, and minimum alignment of offsets and lengths for direct I/O, even if a device
/// would accept 512.
///
/// 4096 is the page size of x86-64 and the logical block size of 4Kn devices, which refuse 512.
pub const DEFAULT_ALIGNMENT: usize = 4096;

/// Same value for file offsets.
pub(crate) const DEFAULT_ALIGNMENT_U64: u64 = 4096;

const _: () = assert!(DEFAULT_ALIGNMENT.is_power_of_two());
const _: () = assert!(DEFAULT_ALIGNMENT as u64 == DEFAULT_ALIGNMENT_U64);
// File positions are u64 and memory lengths usize: the casts between them in this crate are exact.
const _: () = assert!(size_of::<usize>() == size_of::<u64>());

/// Rounds down to a multiple of `alignment`, which must be a power of two.
pub(crate) fn round_down(value: u64, alignment: u64) -> u64 {
    debug_assert!(alignment.is_power_of_two());
    value & !(alignment - 1)
}

/// Rounds up to a multiple of `alignment`, which must be a power of two. Saturates at the largest multiple
/// that fits.
pub(crate) fn round_up(value: u64, alignment: u64) -> u64 {
    debug_assert!(alignment.is_power_of_two());
    match value.checked_add(alignment - 1) {
        Some(sum) => round_down(sum, alignment),
        None => round_down(u64::MAX, alignment),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_at_and_around_multiples() {
        for (value, down, up) in [
            (0, 0, 0),
            (1, 0, 4096),
            (4095, 0, 4096),
            (4096, 4096, 4096),
            (4097, 4096, 8192),
        ] {
            assert_eq!(round_down(value, 4096), down);
            assert_eq!(round_up(value, 4096), up);
        }
        assert_eq!(round_up(u64::MAX, 4096), u64::MAX - 4095);
    }
}
