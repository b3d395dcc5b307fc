//! Asking the processor for memory ahead of its use.

/// Bytes of a cache line.
const LINE: usize = 64;
/// More than this at once would only push out what was asked for first.
const MAX_LEN: usize = 2 << 10;

/// Asks for the cache lines of `len` bytes at `at`, as far as there are so many: two lines at least, 2 KiB
/// at most. Worth it where the place of what comes next is known, other work is left before it, and it
/// is too far from the last one for the processor to see that it goes on: behind a row of hundreds of
/// bytes that another core has just decompressed.
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
