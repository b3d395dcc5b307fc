//! Tests against real Cassandra: of the oracle itself, and of our merge by the oracle.

mod compression;
mod damage;
mod mixed;
mod random;
mod repair;
mod scenario;
mod scrub;
mod support;
