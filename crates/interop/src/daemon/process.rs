//! Start of a daemon's JVMs: flags, user, and a signal that kills them when the starting thread ends.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use anyhow::{Context, Result};

use crate::server::jvm_flags;
use crate::toolchain::Toolchain;

/// An unused user id: a node that runs as root would hide errors in the ownership of files.
const USER: u32 = 9042;

/// Settings that JVMs of one release have in common.
#[derive(Debug, Clone)]
pub(crate) struct Jvm {
    toolchain: Toolchain,
    home: PathBuf,
}

impl Jvm {
    /// Links the jars into the home: another user may not be able to read the local repository.
    pub(crate) fn new(mut toolchain: Toolchain, home: &Path) -> Result<Self> {
        let library = home.join("lib");
        let mut linked = Vec::new();
        for (n, path) in toolchain
            .class_path
            .trim()
            .split(':')
            .map(Path::new)
            .enumerate()
        {
            let name = path
                .file_name()
                .context("a jar or a directory of classes")?;
            let place = library.join(n.to_string());
            link(path, &place.join(name))?;
            linked.push(place.join(name).display().to_string());
        }
        toolchain.class_path = linked.join(":");
        Ok(Self {
            toolchain,
            home: home.to_owned(),
        })
    }

    /// Command of a JVM that runs a class, with all settings that Cassandra needs. The JVM is killed when the thread
    /// that starts it ends, however that happens.
    pub(crate) fn command(&self, flags: &[&str], logback: &str, class: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if is_root() {
            let user = USER.to_string();
            command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
        }
        command.args(["nice", "-n", "5"]).arg(&self.toolchain.java);
        let home = self.home.display();
        command
            .args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            .args(["-XX:+PerfDisableSharedMem", "-Djava.awt.headless=true"])
            .args(jvm_flags(self.toolchain.feature_release))
            .arg(format!(
                "-Dcassandra.config=file://{home}/conf/cassandra.yaml"
            ))
            .arg(format!("-Dcassandra.storagedir={home}"))
            .arg(format!("-Dcassandra.logdir={home}/logs"))
            .arg(format!("-Djava.io.tmpdir={home}/tmp"))
            .arg(format!("-Duser.home={home}"))
            .arg(format!("-Dlogback.configurationFile={logback}"))
            .args(self.toolchain.agent())
            .args(flags)
            .arg("-cp")
            .arg(format!("{home}/conf:{}", self.toolchain.class_path))
            .arg(class)
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(&self.home);
        command
    }
}

/// Links a file, or everything in a directory; copies from another file system.
fn link(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            link(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    fs::create_dir_all(to.parent().context("a directory")?)?;
    if fs::hard_link(from, to).is_err() {
        fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    Ok(())
}

/// Whether processes run as a user of their own.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Makes the user of the daemons the owner of a directory and its content.
pub(crate) fn give_to_daemon(path: &Path) -> Result<()> {
    if !is_root() {
        return Ok(());
    }
    chown(path, Some(USER), Some(USER))
        .with_context(|| format!("cannot change the owner of {}", path.display()))?;
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path)? {
            give_to_daemon(&entry?.path())?;
        }
    }
    Ok(())
}

/// A process that is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
