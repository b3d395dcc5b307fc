//! The BTI index files: compared with Cassandra's, with the order of types, and with damage.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "bti/cassandra.rs"]
mod cassandra;
#[path = "bti/damage.rs"]
mod damage;
#[path = "types/generate.rs"]
#[expect(
    dead_code,
    reason = "shared with the tests of types, which use more of it"
)]
mod generate;
#[path = "bti/order.rs"]
mod order;
