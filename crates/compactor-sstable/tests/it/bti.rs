//! The BTI index files: compared with Cassandra's, with the order of types, and with damage.

mod cassandra;
mod damage;
mod order;
