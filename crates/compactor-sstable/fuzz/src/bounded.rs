//! Memory limit in proportion to the input: length fields must not lead to larger allocations.

use std::alloc::System;
use std::sync::Once;

use cap::Cap;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Memory allowed for any input, bytes: tables of codecs, histograms, messages.
const BASE: usize = 4 << 20;
/// Memory allowed per byte of input, bytes: a few nested nodes of a syntax tree, at worst.
const PER_BYTE: usize = 512;

/// Runs `harness` with at most 4 MiB and 512 bytes per byte of `data` more than is already in use. Beyond
/// that an allocation fails, and the process ends with a message that contains its size.
pub fn run(data: &[u8], harness: fn(&[u8])) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let inner = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // A backtrace is not limited.
            lift_limit();
            inner(panic);
        }));
    });
    let limit = ALLOCATOR.allocated() + BASE + PER_BYTE * data.len();
    // Refused only if more than the new limit is in use.
    let _ = ALLOCATOR.set_limit(limit);
    harness(data);
    lift_limit();
}

fn lift_limit() {
    let _ = ALLOCATOR.set_limit(usize::MAX);
}
