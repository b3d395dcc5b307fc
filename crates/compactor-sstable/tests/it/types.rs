//! Properties of the type system over generated types and values, valid and damaged.

mod cassandra;
mod properties;
