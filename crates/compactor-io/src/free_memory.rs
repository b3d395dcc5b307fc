//! Releasing free memory of the allocator to the system.
#![cfg_attr(
    target_env = "gnu",
    expect(unsafe_code, reason = "no crate in use wraps this call")
)]

/// Releases the allocator's free memory to the system. By default glibc releases only the end of each of its
/// arenas, of which each thread has one (but see [`share_arenas`]): after work with many small buffers,
/// subsequent longer buffers do not fit into the gaps.
///
/// Takes a millisecond or more, so it is meant for the end of such work. Does nothing with other C libraries.
pub fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes a plain number, may be made by any thread at any time, and touches
    // nothing that is allocated. Its result only reports whether memory was released.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Allocations of at least this length are released to the system as soon as they are freed. By default glibc
/// raises this threshold dynamically, and then buffers leave gaps in its arenas.
#[cfg(target_env = "gnu")]
const LONG_BYTES: i32 = 512 << 10;

/// Limits the number of glibc's arenas for threads started from now on, so that memory freed by one thread
/// can be used by another. Does nothing with other C libraries, if other threads are already running, or if
/// `MALLOC_ARENA_MAX` or `GLIBC_TUNABLES` is set.
///
/// For the start of programs whose threads rarely allocate, as in merges.
pub fn share_arenas() {
    #[cfg(target_env = "gnu")]
    {
        let is_chosen = |name| std::env::var_os(name).is_some();
        let threads = crate::read_dir("/proc/self/task").map_or(0, Iterator::count);
        if threads != 1 || is_chosen("MALLOC_ARENA_MAX") || is_chosen("GLIBC_TUNABLES") {
            return;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let arenas = i32::try_from(cores.div_ceil(4)).unwrap_or(i32::MAX);
        // SAFETY: the call takes two plain numbers and touches nothing that is allocated. It must not be
        // made while another thread allocates, and this is the only thread. If it fails, there are as
        // many arenas as before.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, arenas);
        }
        // SAFETY: as above.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LONG_BYTES);
        }
    }
}
