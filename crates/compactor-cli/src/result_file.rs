//! Result file, written completely or left unchanged.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use compactor::Error;
use compactor_sstable::descriptor::Descriptor;
use tempfile::NamedTempFile;

use crate::output::say;

/// Destination of a result. Created before the work, so that a path that cannot be written
/// is known at once and not after an hour. Nothing is there meanwhile that a killed command would leave.
#[derive(Debug)]
pub struct ResultFile {
    /// As the user named it.
    named: PathBuf,
    path: PathBuf,
    to: To,
}

#[derive(Debug)]
enum To {
    /// A new file takes the place of `path` when it is complete.
    New,
    /// A pipe or a device has no other place.
    Special(File),
}

impl ResultFile {
    /// Checks that a file can be created alongside `path`, which is not touched yet.
    ///
    /// # Errors
    /// If nothing can be written there, or if it is a file of an SSTable.
    pub fn create(path: &Path) -> Result<ResultFile, Error> {
        let failed = Error::file("write", path);
        let existing = path.canonicalize().ok();
        if existing.is_some_and(|file| Descriptor::parse(&file).is_ok()) {
            return Err(Error::refused(format!(
                "{}: a file of an SSTable is not replaced by a report; name another file",
                path.display()
            )));
        }
        let prepared = match path.canonicalize() {
            // A link keeps leading to the file.
            Ok(file) if file.is_file() => temporary(&file).map(|_| (file, To::New)),
            Ok(other) => File::options()
                .write(true)
                .open(&other)
                .map(|to| (other, To::Special(to))),
            Err(_) => temporary(path).map(|_| (resolved(path), To::New)),
        };
        let named = path.to_owned();
        let (path, to) = prepared.map_err(failed)?;
        Ok(ResultFile { named, path, to })
    }

    /// As [`create`](ResultFile::create), of two results, for each that has a path.
    ///
    /// # Errors
    /// As there, or if both are one file: the second would replace the first.
    pub fn create_two(paths: [Option<&Path>; 2]) -> Result<[Option<ResultFile>; 2], Error> {
        let [first, second] = paths.map(|path| path.map(ResultFile::create).transpose());
        let two = [first?, second?];
        if let [Some(first), Some(second)] = &two
            && first.path == second.path
            && matches!(first.to, To::New)
        {
            let reason = "named for two results; name another file for one of them";
            return Err(Error::invalid(format!(
                "{}: {reason}",
                first.named.display()
            )));
        }
        Ok(two)
    }

    /// Writes the result, and says what was written to where.
    ///
    /// # Errors
    /// A failed write; a file that was there before is as it was then.
    pub fn write(self, what: &str, text: &str) -> Result<(), Error> {
        let written = match self.to {
            To::Special(mut file) => file.write_all(text.as_bytes()),
            To::New => temporary(&self.path).and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.persist(&self.path).map(drop).map_err(|e| e.error)
            }),
        };
        written.map_err(Error::file("write", &self.path))?;
        say(format_args!("{what}: {}", self.named.display()));
        Ok(())
    }
}

/// Path of a file that does not exist, with its directory resolved.
fn resolved(path: &Path) -> PathBuf {
    let directory = directory_of(path).canonicalize();
    match (directory, path.file_name()) {
        (Ok(directory), Some(name)) => directory.join(name),
        _ => path.to_owned(),
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Creates a file in the directory of `path`.
fn temporary(path: &Path) -> io::Result<NamedTempFile> {
    let directory = directory_of(path);
    // An error of the temporary file would name that file, which nobody knows.
    directory.join(".").metadata()?;
    // As for any new file, subject to the umask.
    tempfile::Builder::new()
        .prefix(".compactor-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    use compactor::ErrorKind;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_result_is_written_whole_or_the_file_is_unchanged() {
        let temp = tempfile::tempdir().unwrap();
        let (path, link) = (temp.path().join("report"), temp.path().join("link"));
        let created = ResultFile::create(&path).unwrap();
        assert!(names(temp.path()).is_empty());
        drop(created);
        ResultFile::create(&path)
            .unwrap()
            .write("report", "first")
            .unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        drop(ResultFile::create(&link).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        ResultFile::create(&link)
            .unwrap()
            .write("report", "second")
            .unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert!(link.is_symlink());
        assert_eq!(names(temp.path()), ["link", "report"]);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o600, 0o600);
        fs::write(temp.path().join("plain"), "").unwrap();
        let plain = fs::metadata(temp.path().join("plain")).unwrap();
        assert_eq!(mode, plain.permissions().mode());
    }

    #[test]
    fn two_results_need_two_files() {
        let temp = tempfile::tempdir().unwrap();
        let two = |first: &Path, second: &Path| ResultFile::create_two([Some(first), Some(second)]);
        let (here, again) = (temp.path().join("report"), temp.path().join("./report"));
        for exists in [false, true] {
            let error = two(&here, &again).unwrap_err().to_string();
            assert!(error.contains("named for two results"), "{exists}: {error}");
            fs::write(&here, "").unwrap();
        }
        assert!(two(&here, &temp.path().join("other")).is_ok());
        assert!(two(Path::new("/dev/null"), Path::new("/dev/null")).is_ok());
    }

    #[test]
    fn a_file_that_cannot_be_written_is_refused_at_the_start() {
        let temp = tempfile::tempdir().unwrap();
        let error = ResultFile::create(&temp.path().join("none/report")).unwrap_err();
        assert!(error.to_string().contains("none/report"), "{error}");
        assert!(!error.to_string().contains(".compactor-"), "{error}");
        assert!(ResultFile::create(temp.path()).is_err());
        let component = temp.path().join("oa-1-big-Data.db");
        fs::write(&component, "rows").unwrap();
        let error = ResultFile::create(&component).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        let device = ResultFile::create(Path::new("/dev/null")).unwrap();
        device.write("report", "gone").unwrap();
        let full = ResultFile::create(Path::new("/dev/full")).unwrap();
        assert!(full.write("report", "too much").is_err());
    }
}
