//! Fuzz harnesses of every parser of `compactor-sstable`, which must return a value or an error for any
//! bytes.
//!
//! A harness fails by a panic, by a wrong result that it can detect, by not terminating, or by memory that
//! the input's length does not justify (see [`bounded`]). `tests/replay.rs` runs all of them over seeds and
//! simple mutants on a stable toolchain; the binaries in `fuzz_targets` pass them to libFuzzer.
//!
//! Arguments of a parser other than its bytes, such as the version, are taken from the first bytes of the
//! input. Checksums are corrected before parsing, since otherwise no code after their validation would be
//! reached.

pub mod bounded;
pub mod components;
pub mod data;
pub mod names;
pub mod seeds;
pub mod statistics;
pub mod tries;
pub mod values;

/// A harness.
pub type Harness = fn(&[u8]);

/// All harnesses, by the names of their fuzz targets.
pub const HARNESSES: [(&str, Harness); 15] = [
    ("vint", values::vint),
    ("types", values::types),
    ("counter", values::counter),
    ("data", data::data),
    ("compression_info", components::compression_info),
    ("chunk", components::chunk),
    ("index", components::index),
    ("summary", components::summary),
    ("filter", components::filter),
    ("small_components", components::small_components),
    ("statistics", statistics::statistics),
    ("schema", names::schema),
    ("names", names::names),
    ("transaction_log", names::transaction_log),
    ("bti", tries::bti),
];

/// Runs the harness of this name with bounded memory.
///
/// # Panics
/// If there is none, or if the harness finds a defect.
pub fn run(name: &str, data: &[u8]) {
    let harness = HARNESSES.iter().find(|(known, _)| *known == name);
    let (_, harness) = harness.unwrap_or_else(|| panic!("no harness {name}"));
    bounded::run(data, *harness);
}

/// Splits off the first `N` bytes.
pub(crate) fn take<const N: usize>(data: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = data.split_first_chunk::<N>()?;
    *data = rest;
    Some(*first)
}

/// Version selected by a byte.
pub(crate) fn version(byte: u8) -> compactor_sstable::Version {
    let all = compactor_sstable::Version::ALL;
    all[usize::from(byte) % all.len()]
}
