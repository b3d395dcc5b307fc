//! Tests against real Cassandra: of the oracle itself, and of our merge against the oracle.

mod cassandra_5;
mod compact;
mod compression;
mod daemons;
mod damage;
mod equal_clusterings;
mod generated;
mod lenience;
mod mixed;
mod old_releases;
mod old_scenarios;
mod partitioner;
mod planning;
mod random;
mod repair;
mod scenario;
mod scrub;
mod shared_files;
mod shared_list;
mod size_tiered;
mod split;
mod strip_ttl;
mod support;
mod swap;
mod transaction_log;
mod written;
