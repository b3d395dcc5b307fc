//! Prefetching memory into the processor's caches.

/// Length of a cache line, bytes.
const LINE: usize = 64;
/// Maximum bytes prefetched: more would evict the first ones.
const MAX_LEN: usize = 2 << 10;

/// Prefetches the cache lines of `len` bytes at `at` that are in `bytes`: at least two lines, at most 2
/// KiB. Pays off if the position of the next data is known in advance and too far from the last access for
/// the hardware prefetcher: after a row of hundreds of bytes that another core has just decompressed.
#[inline(always)]
pub fn prefetch(bytes: &[u8], at: usize, len: usize) {
    let Some(ahead) = bytes.get(at..) else {
        return;
    };
    let len = len.clamp(2 * LINE, MAX_LEN).min(ahead.len());
    for line in ahead[..len].iter().step_by(LINE) {
        prefetch_line(line);
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[expect(unsafe_code, reason = "there is no safe name for the instruction")]
fn prefetch_line(byte: &u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the address is that of a byte, of which as far as the program can tell nothing is read or
    // written; every x86_64 has SSE.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn prefetch_line(_: &u8) {}
