//! The system's allocator with counters, for tests that code does not allocate, or allocates little. Shared with the
//! tests of other crates.
#![allow(dead_code, reason = "each test uses its part")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Bytes that this thread has allocated and not freed, and their maximum.
    static HELD_BYTES: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

/// The number of allocations of all threads.
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.load(SeqCst)
}

/// The peak memory that `act` allocated, beyond what its thread held before.
pub(crate) fn peak_bytes(act: impl FnOnce()) -> usize {
    let (before, _) = HELD_BYTES.get();
    HELD_BYTES.set((before, before));
    act();
    let (_, peak) = HELD_BYTES.get();
    (peak - before) as usize
}

fn count(allocations: u64, grown_bytes: isize) {
    ALLOCATIONS.fetch_add(allocations, SeqCst);
    let (held, peak) = HELD_BYTES.get();
    let held = held + grown_bytes;
    HELD_BYTES.set((held, peak.max(held)));
}

#[allow(
    unsafe_code,
    reason = "an allocator is unsafe by its trait; each call is passed on as it came"
)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -(layout.size() as isize));
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as isize);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(1, bytes as isize - layout.size() as isize);
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}
