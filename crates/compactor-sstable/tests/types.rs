//! Properties of the type system over generated types and values, valid and damaged.

#[path = "types/cassandra.rs"]
mod cassandra;
#[path = "types/generate.rs"]
mod generate;
#[path = "types/properties.rs"]
mod properties;
