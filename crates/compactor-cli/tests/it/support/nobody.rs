//! The command as another user than the one who runs the tests.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use compactor_testkit::{Need, skip};

const NOBODY: u32 = 65_534;

/// Runs the command as `nobody` in a directory that this user owns.
pub struct Nobody {
    directory: PathBuf,
    program: PathBuf,
}

impl Nobody {
    /// Changes the owner of the directory to `nobody`. `None` if not root, as which tests in a container run.
    pub fn in_directory(directory: &Path) -> Option<Nobody> {
        if chown(directory, Some(NOBODY), Some(NOBODY)).is_err() {
            skip(Need::Root, "only root runs programs as others");
            return None;
        }
        // The target directory may be another user's.
        let program = directory.join("compactor");
        fs::copy(env!("CARGO_BIN_EXE_compactor"), &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Some(Nobody {
            directory: directory.to_owned(),
            program,
        })
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.directory);
        command.uid(NOBODY).gid(NOBODY).output().unwrap()
    }
}
