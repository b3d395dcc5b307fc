//! What to do where Java or Maven is missing: say so and pass on a developer's machine, fail where Cassandra is required.

use crate::toolchain;

/// Whether the environment insists on Cassandra (`CI=true` or `COMPACTOR_REQUIRE_CASSANDRA=1`).
pub fn required() -> bool {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|set| set == value);
    is("CI", "true") || is("COMPACTOR_REQUIRE_CASSANDRA", "1")
}

/// True where the test cannot run; the reason has been printed.
///
/// # Panics
/// Where the environment requires Cassandra: a skipped oracle must not look like a passed one.
pub fn without_cassandra() -> bool {
    let Some(reason) = toolchain::missing() else {
        return false;
    };
    assert!(!required(), "interop is required here, but {reason}");
    println!("SKIPPED interop: {reason}");
    eprintln!("SKIPPED interop: {reason}");
    true
}
