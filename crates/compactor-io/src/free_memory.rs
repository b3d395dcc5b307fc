//! Memory that was freed and that the allocator keeps.
#![cfg_attr(
    target_env = "gnu",
    expect(unsafe_code, reason = "no crate in use wraps this call")
)]

/// Has the allocator give what is free back to the system. glibc by itself gives back no more than
/// the end of each of its arenas, of which each thread has its own but for [`share_arenas`]: after work with many small
/// buffers, what comes next and asks for longer ones finds no room in what they leave.
///
/// Takes a millisecond or more: for the end of such work. Does nothing with other C libraries.
pub fn give_back_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes a plain number, may be made by any thread at any time, and touches
    // nothing that is allocated. Its answer tells only whether anything was given back.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// What is as long is given back to the system as soon as it is freed. glibc raises that by itself, and then
/// buffers leave holes in its arenas.
#[cfg(target_env = "gnu")]
const LONG_BYTES: i32 = 512 << 10;

/// Has the threads that are started from now on share few arenas of glibc: what one thread frees another
/// can use then, while otherwise each arena keeps its own. Does nothing with other C libraries, where
/// other threads are running already, or where `MALLOC_ARENA_MAX` or `GLIBC_TUNABLES` says otherwise.
///
/// For the beginning of programs whose threads allocate seldom, as merges do.
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
        // made beside a thread that allocates, and this is the only thread. If it fails, there are as
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
