//! Asking the processor for memory ahead of its use.

/// Asks for the cache line with `bytes[at]` and the one behind it, if there are so many bytes. Worth it
/// where the place of what comes next is known, other work is left before it, and it is too far from
/// the last one for the processor to see that it goes on: behind a row of hundreds of bytes that
/// another core has just decompressed.
#[inline(always)]
pub fn prefetch(bytes: &[u8], at: usize) {
    for line in [at, at.saturating_add(64)] {
        if let Some(byte) = bytes.get(line) {
            prefetch_line(byte);
        }
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
