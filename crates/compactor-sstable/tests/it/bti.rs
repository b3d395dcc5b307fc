//! The BTI index files: against Cassandra's own, against the order of types, and against damage.

mod cassandra;
mod damage;
mod order;
