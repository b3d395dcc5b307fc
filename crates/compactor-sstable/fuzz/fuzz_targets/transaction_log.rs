//! See the harness of the same name.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| compactor_sstable_fuzz::run("transaction_log", data));
