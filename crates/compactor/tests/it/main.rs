//! Tests of the library, in one binary.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bti;
mod compact;
mod dump;
mod generate;
mod leniency;
mod merge_modes;
mod metadata;
mod old_statistics;
mod old_user_types;
mod passes;
mod promoted_index;
mod ranges;
mod replay;
mod request;
mod rewrite_record;
mod rows;
mod scrub;
mod support;
mod swap;
mod verify_content;
mod verify_damage;
mod verify_intact;
mod verify_recovery;
mod verify_statistics;
mod verify_verdict;
