//! Where ours is stricter than Cassandra's readers and verifier on purpose; LENIENCE.md of the facade says why.

/// Kinds of refusal (component and structure) that a merge, a dump or `metadata` keeps although Cassandra opens the
/// SSTable, reads it to its end and calls it sound.
const REFUSED: [(&str, &str); 0] = [];

/// Whether a refusal of this kind is meant to be.
#[must_use]
pub fn is_stricter_on_purpose(kind: &str) -> bool {
    is_listed(&REFUSED, kind)
}

/// Kinds of damage that only verification calls so.
const DAMAGE: [(&str, &str); 0] = [];

/// Whether verification is meant to call this damage.
#[must_use]
pub fn is_stricter_in_verify(kind: &str) -> bool {
    is_listed(&DAMAGE, kind) || is_listed(&REFUSED, kind)
}

/// A structure that ends in a dot, or is empty, stands for all that begin so.
fn is_listed(kinds: &[(&str, &str)], kind: &str) -> bool {
    let Some((component, structure)) = kind.split_once(' ') else {
        return false;
    };
    kinds.iter().any(|(of, listed)| {
        let is_start = listed.is_empty() || listed.ends_with('.');
        *of == component && (structure == *listed || is_start && structure.starts_with(listed))
    })
}
