//! Global allocator for commands that reports a refused allocation as an error instead of crashing.
#![expect(unsafe_code, reason = "an allocator is unsafe to implement")]

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator. If it refuses memory, the process prints a message on stderr and exits without
/// cleaning up; the standard library would abort it.
#[derive(Debug)]
pub struct ExitingAllocator {
    message: &'static str,
    exit_code: i32,
}

impl ExitingAllocator {
    /// Creates an allocator with its message, a line with its end, and its exit code.
    pub const fn new(message: &'static str, exit_code: i32) -> ExitingAllocator {
        ExitingAllocator { message, exit_code }
    }

    #[inline]
    fn checked(&self, pointer: *mut u8) -> *mut u8 {
        if pointer.is_null() {
            self.exit();
        }
        pointer
    }

    #[cold]
    fn exit(&self) -> ! {
        // Neither allocates nor takes a lock. A failure to print is ignored.
        let _ = rustix::io::write(rustix::stdio::stderr(), self.message.as_bytes());
        // SAFETY: it ends the process and nothing else, and may be called anywhere.
        unsafe { libc::_exit(self.exit_code) }
    }
}

// SAFETY: every call goes to the system's allocator as it is, and what that returns is returned unless it
// is null, after which nothing returns.
unsafe impl GlobalAlloc for ExitingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller promises what this function asks for.
        self.checked(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        self.checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as above.
        self.checked(unsafe { System.realloc(pointer, layout, new_size) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}
