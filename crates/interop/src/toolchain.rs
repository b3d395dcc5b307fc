//! Compiles the Java side once: Maven resolves Cassandra's class path, `javac` compiles `java/src`.
//!
//! The result lives under the cargo target directory, keyed by a stamp of the sources, the POM, the JDK and the
//! Cassandra version, under a file lock, so that test binaries that run at the same time build it once.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::program;

/// A `java` command and the class path that holds Cassandra and the server.
#[derive(Debug, Clone)]
pub(crate) struct Toolchain {
    pub(crate) java: PathBuf,
    pub(crate) class_path: String,
    pub(crate) feature_release: u32,
    /// Directory of the build.
    place: PathBuf,
}

impl Toolchain {
    /// The class-data archive, with which a JVM starts faster.
    pub(crate) fn archive(&self) -> PathBuf {
        archive_in(&self.place)
    }

    /// The agent that measures memory, which releases before 5.0 cannot do without.
    pub(crate) fn agent(&self) -> Option<String> {
        let is_agent = |jar: &&str| jar.rsplit('/').next().unwrap_or(jar).starts_with("jamm-");
        let jar = self.class_path.split(':').find(is_agent)?;
        Some(format!("-javaagent:{jar}"))
    }

    /// Writes the archive if there is none: `run` starts a JVM with the given flag and ends it in an orderly way.
    pub(crate) fn archive_classes(&self, run: impl FnOnce(String) -> Result<()>) -> Result<()> {
        let _lock = lock(&self.place)?;
        let archive = self.archive();
        if archive.exists() {
            return Ok(());
        }
        let unfinished = archive.with_extension("unfinished");
        run(format!("-XX:ArchiveClassesAtExit={}", unfinished.display()))?;
        fs::rename(&unfinished, &archive)
            .with_context(|| format!("the JVM wrote no {}", unfinished.display()))
    }
}

/// Reason why the tools cannot be used on this machine, if any.
pub(crate) fn missing() -> Option<String> {
    let java = |name| program::missing(java_command(name), "-version");
    java("java")
        .or_else(|| java("javac"))
        .or_else(|| program::missing("mvn", "-v"))
}

/// Builds the judging server if need be, and returns its toolchain. `more` is the directory of sources that only this
/// release compiles.
pub(crate) fn prepare(version: &str, more: &str) -> Result<Toolchain> {
    build("java", &["src", more], version, &[])
}

/// As [`prepare`], for an old release that writes inputs. Without `fetch` it must be in Maven's local repository.
pub(crate) fn prepare_old(version: &str, fetch: bool) -> Result<Toolchain> {
    build(
        "java-old",
        &["src"],
        version,
        if fetch { &[] } else { &["-o"] },
    )
}

/// As [`prepare`], for a release that runs as a daemon, with the version of logback that its distribution has. Before
/// 4.0 it needs Thrift and a driver, and its nodetool needs a JVM for each command.
pub(crate) fn prepare_daemon(version: &str, logback: &str, is_old: bool) -> Result<Toolchain> {
    let logback = format!("-Dlogback.version={logback}");
    if is_old {
        return build(
            "java-daemon",
            &["src/compactor"],
            version,
            &["-Pbefore-4.0", &logback],
        );
    }
    build("java-daemon", &["src"], version, &[&logback])
}

fn build(directory: &str, sources: &[&str], version: &str, maven: &[&str]) -> Result<Toolchain> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let place = target_directory()
        .join(format!("interop-{directory}"))
        .join(version);
    fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
    let _lock = lock(&place)?;

    let mut files = Vec::new();
    for name in sources {
        files.extend(java_files(&source.join(name))?);
    }
    let java = java_command("java");
    let feature_release = feature_release(&java)?;
    let stamp = stamp(&source.join("pom.xml"), &files, feature_release)?;
    let class_path_file = place.join("classpath.txt");
    let stamp_file = place.join("stamp");
    // A class-data archive holds classes from jars only.
    let classes = place.join("interop.jar");
    let fresh = fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp);
    if !fresh || !classes.exists() || !class_path_holds(&class_path_file) {
        // A failed build must not look fresh.
        let _ = fs::remove_file(&stamp_file);
        let _ = fs::remove_file(archive_in(&place));
        resolve(&source.join("pom.xml"), version, maven, &class_path_file)?;
        compile(&files, &fs::read_to_string(&class_path_file)?, &classes)?;
        fs::write(&stamp_file, stamp)?;
    }
    let jars = fs::read_to_string(&class_path_file)?;
    Ok(Toolchain {
        java,
        class_path: format!("{}:{}", classes.display(), jars.trim()),
        feature_release,
        place,
    })
}

fn archive_in(place: &Path) -> PathBuf {
    place.join("classes.jsa")
}

/// Locks a directory: test binaries may run at the same time.
fn lock(place: &Path) -> Result<File> {
    let path = place.join("lock");
    let lock = File::create(&path)?;
    lock.lock()
        .with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(lock)
}

/// `JAVA_HOME` where it is set, otherwise the `PATH`.
fn java_command(name: &str) -> PathBuf {
    match std::env::var_os("JAVA_HOME") {
        Some(home) if !home.is_empty() => Path::new(&home).join("bin").join(name),
        _ => PathBuf::from(name),
    }
}

/// The cargo target directory: named by the environment, or an ancestor of the running binary that cargo tagged.
pub(crate) fn target_directory() -> PathBuf {
    if let Some(named) = std::env::var_os("CARGO_TARGET_DIR") {
        return PathBuf::from(named);
    }
    if let Ok(binary) = std::env::current_exe()
        && let Some(tagged) = binary
            .ancestors()
            .find(|place| place.join("CACHEDIR.TAG").exists())
    {
        return tagged.to_owned();
    }
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")
}

fn java_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut places = vec![root.to_owned()];
    while let Some(place) = places.pop() {
        for entry in
            fs::read_dir(&place).with_context(|| format!("cannot list {}", place.display()))?
        {
            let path = entry?.path();
            if path.is_dir() {
                places.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "java")
            {
                found.push(path);
            }
        }
    }
    ensure!(
        !found.is_empty(),
        "no Java sources under {}",
        root.display()
    );
    found.sort();
    Ok(found)
}

fn stamp(pom: &Path, files: &[PathBuf], feature_release: u32) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    // An archive is valid for one JDK only.
    feature_release.hash(&mut hasher);
    fs::read(pom)?.hash(&mut hasher);
    for file in files {
        file.hash(&mut hasher);
        fs::read(file)?.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// Whether the class path was resolved and its jars are still in the local repository.
fn class_path_holds(file: &Path) -> bool {
    fs::read_to_string(file)
        .is_ok_and(|jars| jars.trim().split(':').all(|jar| Path::new(jar).exists()))
}

fn resolve(pom: &Path, version: &str, maven: &[&str], class_path_file: &Path) -> Result<()> {
    run(Command::new("mvn")
        .args(maven)
        .args(["-q", "-B", "-f"])
        .arg(pom)
        .arg(format!("-Dcassandra.version={version}"))
        .arg("dependency:build-classpath")
        .arg(format!("-Dmdep.outputFile={}", class_path_file.display())))
}

/// Compiles into a jar.
fn compile(files: &[PathBuf], class_path: &str, jar: &Path) -> Result<()> {
    let classes = tempfile::tempdir()?;
    run(Command::new(java_command("javac"))
        .args([
            "-encoding",
            "UTF-8",
            "-nowarn",
            "-cp",
            class_path.trim(),
            "-d",
        ])
        .arg(classes.path())
        .args(files))?;
    run(Command::new(java_command("jar"))
        .args(["--create", "--file"])
        .arg(jar)
        .arg("-C")
        .arg(classes.path())
        .arg("."))
}

fn run(command: &mut Command) -> Result<()> {
    program::output(command).map(drop)
}

/// 17 for `17.0.15`, 25 for `25`.
fn feature_release(java: &Path) -> Result<u32> {
    let output = Command::new(java)
        .args(["-XshowSettings:properties", "-version"])
        .output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let version = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("java.specification.version = "))
        .with_context(|| format!("{} did not print its version", java.display()))?;
    version
        .trim()
        .parse()
        .with_context(|| format!("unexpected Java version {version}"))
}
