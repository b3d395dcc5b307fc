//! Passes the commit and the compiler to the crate, for the record of each experiment.
use std::path::Path;
use std::process::Command;

fn main() {
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let rustc = printed(Command::new(compiler).arg("--version"));
    let rustc = rustc.unwrap_or_else(|| "rustc of an unknown version".to_owned());
    println!("cargo::rustc-env=COMPACTOR_LAB_RUSTC={rustc}");
    // Sources that were not checked out have no commit.
    let git = |arguments: &[&str]| printed(Command::new("git").args(arguments));
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo::rustc-env=COMPACTOR_LAB_COMMIT={commit}");
    }
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]);
    match log.filter(|log| Path::new(log).exists()) {
        Some(log) => println!("cargo::rerun-if-changed={log}"),
        None => println!("cargo::rerun-if-changed=build.rs"),
    }
}

fn printed(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|o| o.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned())
}
