//! Tests of the command, in one binary.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bench;
mod compact;
mod compact_strategies;
mod demo;
mod doctor;
mod dump_and_metadata;
mod ends;
mod faults;
mod generate;
mod generations;
mod lab;
mod lab_chunk_length;
mod lab_fan_out;
mod lab_fio;
mod lab_report;
mod live_directory;
mod merge;
mod options;
mod overlapping;
mod passes;
mod places;
mod plan;
mod ranges;
mod repair;
mod schema;
mod scrub;
mod simulate;
mod snapshots;
mod split;
mod statements;
mod strip_ttl;
mod support;
mod swap;
mod upgrade;
mod verify;
