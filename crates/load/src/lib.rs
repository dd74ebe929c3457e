//! The load engine: threads, connections, schedule and recorder.
