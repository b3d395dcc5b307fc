//! Inputs, the commands that are run on them, and the result of each without faults.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};

use compactor_testkit::machine::disk_directory;
use tempfile::TempDir;

use crate::faults::inject::{self, Injection};
use crate::faults::outcome::Outcome;

/// Locked exclusively while the test reads the inputs, and shared by runs that must succeed: these refuse a table whose
/// files another process has open, as a node would.
pub static INPUTS: RwLock<()> = RwLock::new(());

/// Options for several outputs of one merge, which are published all or none.
pub const SEVERAL: &str = "--max-sstable-size 60KiB";

/// Path of the command under test, which the environment may override.
pub fn compactor() -> String {
    let built = env!("CARGO_BIN_EXE_compactor");
    std::env::var("COMPACTOR_FAULT_COMMAND").unwrap_or_else(|_| built.to_owned())
}

/// A backend that may take ten minutes to give up, and that is never chosen by default.
pub const TOKIO_URING: &str = "tokio-uring";

/// Keyspace of the generated table.
const KEYSPACE: &str = "generated";

/// File names and their content.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A command line that is run with many faults.
pub struct Tried {
    pub name: &'static str,
    /// With `OUT` for the output directory.
    arguments: Vec<String>,
    /// Whether the command swaps; `OUT` then contains a table and a merge of it beforehand.
    pub is_swap: bool,
    known: OnceLock<Known>,
    calls: OnceLock<Calls>,
}

/// Results of a command without faults.
pub struct Known {
    /// Files below the output directory afterwards.
    pub good: Files,
    /// Its standard output, if that is the same in each run.
    pub printed: Option<Vec<u8>>,
}

/// System calls of a command without faults: counts of each, in the thread that makes it most often.
pub type Calls = HashMap<String, usize>;

impl Tried {
    /// Whether it ends soon after any fault.
    pub fn ends_soon(&self) -> bool {
        !self.arguments.iter().any(|word| word == TOKIO_URING)
    }

    pub fn arguments(&self, out: &Path) -> Vec<String> {
        let out = out.to_str().unwrap();
        let arguments = self.arguments.iter();
        arguments.map(|a| a.replace("OUT", out)).collect()
    }
}

pub struct Setting {
    root: TempDir,
    inputs: PathBuf,
    before: Files,
    pub commands: Vec<Tried>,
    runs: AtomicU64,
}

impl Setting {
    /// The instance shared by all tests that run at the same time.
    pub fn shared() -> Arc<Setting> {
        static SHARED: Mutex<Weak<Setting>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap();
        shared.upgrade().unwrap_or_else(|| {
            let setting = Arc::new(Setting::new());
            *shared = Arc::downgrade(&setting);
            setting
        })
    }

    pub fn new() -> Setting {
        // On a disk; /tmp may be a tmpfs.
        let root = disk_directory();
        let data = root.path().join("data");
        let made = Command::new(compactor())
            .args(["generate", "--shape", "wide", "--rows", "1500", "--output"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let table = fs::read_dir(data.join("generated")).unwrap().next();
        let inputs = table.unwrap().unwrap().path();
        let mut setting = Setting {
            before: files_below(&inputs),
            inputs,
            root,
            commands: Vec::new(),
            runs: AtomicU64::new(0),
        };
        setting.add_commands();
        setting
    }

    fn add_commands(&mut self) {
        let writing = [
            ("merge", "merge IN --output OUT --complete --now 1800000000"),
            (
                "compact",
                "compact IN --output OUT --complete --major --now 1800000000",
            ),
            // Several outputs, which are published all or none.
            ("split", "split IN --output OUT --size 60KiB"),
            (
                "upgrade",
                "upgrade IN --output OUT --compression none --sstable-version nb",
            ),
            ("scrub", "scrub IN --output OUT"),
            ("generate", "generate --output OUT --shape maps --rows 900"),
        ];
        let modes = [
            "",
            "--backend threads",
            "--backend threads --write-io dontneed",
            "--backend uring --write-io trickle",
        ];
        for (name, line) in writing {
            for mode in modes {
                self.add(name, &format!("{line} {mode}"));
            }
        }
        let merge = writing[0].1;
        self.add("merge", &format!("{merge} {SEVERAL}"));
        self.add("merge", &format!("{merge} --backend {TOKIO_URING}"));
        for backend in ["uring", "threads"] {
            self.add("verify", &format!("verify IN --backend {backend}"));
        }
        let table = self.inputs.file_name().unwrap().to_str().unwrap();
        let swap =
            format!("swap OUT/merged --into OUT/data/{KEYSPACE}/{table} --inputs-to OUT/inputs");
        self.add("swap", &swap);
        self.add("dump", "dump IN");
        self.add("metadata", "metadata IN --format json");
    }

    fn add(&mut self, name: &'static str, line: &str) {
        let inputs = self.inputs.to_str().unwrap();
        let words = line.split(' ').filter(|word| !word.is_empty());
        self.commands.push(Tried {
            name,
            arguments: words.map(|word| word.replace("IN", inputs)).collect(),
            is_swap: name == "swap",
            known: OnceLock::new(),
            calls: OnceLock::new(),
        });
    }

    pub fn known<'a>(&self, tried: &'a Tried) -> &'a Known {
        tried.known.get_or_init(|| {
            let (good, printed) = self.without_faults(tried);
            Known {
                good,
                printed: (tried.name == "dump").then_some(printed),
            }
        })
    }

    pub fn calls<'a>(&self, tried: &'a Tried) -> &'a Calls {
        tried.calls.get_or_init(|| {
            let directory = self.new_directory();
            let out = directory.join("out");
            self.prepare(tried, &out);
            let calls = {
                let _runs = INPUTS.read();
                inject::count_calls(&tried.arguments(&out), &directory)
            };
            assert!(
                files_below(&out) == self.known(tried).good,
                "{:?}: other bytes each time",
                tried.arguments
            );
            fs::remove_dir_all(directory).unwrap();
            calls
        })
    }

    fn without_faults(&self, tried: &Tried) -> (Files, Vec<u8>) {
        let directory = self.new_directory();
        let out = directory.join("out");
        self.prepare(tried, &out);
        let _runs = INPUTS.read();
        let output = Command::new(compactor())
            .args(tried.arguments(&out))
            .output();
        let output = output.unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?}: {stderr}", tried.arguments);
        let files = files_below(&out);
        fs::remove_dir_all(directory).unwrap();
        (files, output.stdout)
    }

    /// Creates the files that a command needs below its output directory: for a swap a table, and a merge of it.
    fn prepare(&self, tried: &Tried, out: &Path) {
        if !tried.is_swap {
            return;
        }
        let table = self.inputs.file_name().unwrap();
        let table = out.join("data").join(KEYSPACE).join(table);
        fs::create_dir_all(&table).unwrap();
        {
            let _reading = INPUTS.write();
            for name in self.before.keys() {
                fs::copy(self.inputs.join(name), table.join(name)).unwrap();
            }
        }
        let _runs = INPUTS.read();
        let merged = Command::new(compactor())
            .arg("merge")
            .arg(&table)
            .args(["--complete", "--now", "1800000000", "--output"])
            .arg(out.join("merged"))
            .output()
            .unwrap();
        assert!(merged.status.success(), "{merged:?}");
    }

    fn has_inputs_as_before(&self) -> bool {
        let _reading = INPUTS.write();
        files_below(&self.inputs) == self.before
    }

    pub fn command(&self, name: &str, with: &str) -> &Tried {
        let fits = |tried: &&Tried| tried.name == name && tried.arguments.join(" ").contains(with);
        self.commands.iter().find(fits).unwrap()
    }

    pub fn new_directory(&self) -> PathBuf {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let directory = self.root.path().join(format!("run-{number}"));
        fs::create_dir(&directory).unwrap();
        directory
    }

    /// Runs a command with a fault; an error describes what is wrong with the outcome.
    pub fn try_fault(&self, tried: &Tried, injection: &Injection) -> Result<(), String> {
        self.try_under(tried, |command| injection.tracer(command))
    }

    /// Runs a command line that was changed by `wrap`.
    pub fn try_under(
        &self,
        tried: &Tried,
        wrap: impl Fn(&[String]) -> Vec<String>,
    ) -> Result<(), String> {
        let directory = self.new_directory();
        let out = directory.join("out");
        self.prepare(tried, &out);
        let mut line = vec![compactor()];
        line.extend(tried.arguments(&out));
        let line = wrap(&line);
        let outcome = Outcome::of(&line);
        let result = outcome
            .check(self.known(tried), tried, &out)
            .and_then(|()| {
                if self.has_inputs_as_before() {
                    Ok(())
                } else {
                    Err("its inputs are not what they were".to_owned())
                }
            });
        let result = result.and_then(|()| {
            if directory.exists() || outcome.hides_files {
                Ok(())
            } else {
                Err("a directory that was there is gone".to_owned())
            }
        });
        let _ = fs::remove_dir_all(&directory);
        result.map_err(|what| format!("{what}\n  {}\n{}", line.join(" "), outcome.text()))
    }
}

pub fn files_below(directory: &Path) -> Files {
    let mut files = Files::new();
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        let Ok(entries) = fs::read_dir(&next) else {
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => left.push(path),
                false if path.ends_with("compactor-swap.json") => {}
                // The content has times, which differ between runs: only its presence is compared.
                false if path.ends_with("compactor-run.json") => {
                    let name = path.strip_prefix(directory).unwrap().to_owned();
                    files.insert(name, Vec::new());
                }
                false => {
                    let name = path.strip_prefix(directory).unwrap().to_owned();
                    files.insert(name, fs::read(path).unwrap());
                }
            }
        }
    }
    files
}
