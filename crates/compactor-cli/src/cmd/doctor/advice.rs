//! Advice derived from the findings.

use super::findings::{Findings, Status};

/// A merge has two descriptors for each input, and some besides; this suffices for a thousand inputs.
const ENOUGH_FILES: u64 = 2200;
/// Readahead of buffered reads below which alternating reads of several files seek a lot, KiB.
const LONG_READAHEAD_KB: u64 = 1024;

/// Advice for the operator.
pub fn advice(findings: &Findings) -> Vec<String> {
    let mut advice = Vec::new();
    let in_memory = findings
        .mount
        .as_ref()
        .is_some_and(|m| matches!(m.file_system.as_str(), "tmpfs" | "ramfs" | "devtmpfs"));
    if in_memory {
        advice.push(
            "this file system is in memory: all of it is page cache, whichever mode is used; choose \
             a directory on a disk"
                .to_owned(),
        );
    } else if findings.direct_io.status == Status::Fails {
        advice.push(
            "direct I/O does not work: auto uses dontneed, which goes through the page cache and \
             drops pages a few MiB behind; --read-io direct and --write-io direct are refused here"
                .to_owned(),
        );
    }
    if findings.direct_io.status == Status::Unknown {
        advice.push(
            "nothing could be tried: run it as a user who may write here, or on a directory that \
             holds files"
                .to_owned(),
        );
    } else if !findings.writable.works() {
        advice.push(
            "nothing can be written here, so it serves for inputs only; the findings come from \
             reading a file that is there"
                .to_owned(),
        );
    }
    if !findings.io_uring.works() {
        advice.push(
            "io_uring is blocked or missing: --backend threads is used instead, with the same \
             results; to allow it, see `sysctl kernel.io_uring_disabled` and the seccomp profile of \
             the container"
                .to_owned(),
        );
    }
    if findings.dontcache.status == Status::Fails {
        advice.push(
            "--read-io dontcache and --write-io dontcache are refused here: RWF_DONTCACHE needs \
             Linux 6.14 and a file system that supports it, such as ext4 or xfs"
                .to_owned(),
        );
    }
    if findings.cachestat.status == Status::Fails {
        advice.push(
            "cachestat is missing (Linux 6.5), blocked or counts nothing: page counts in reports come \
             from mincore, which does not report dirty pages"
                .to_owned(),
        );
    }
    if findings.page_counts.status == Status::Fails {
        advice.push(
            "there are files that you neither own nor may write to: how much of them is in the page \
             cache is \"unknown\" in reports (null in JSON); merges do not depend on it"
                .to_owned(),
        );
    }
    if findings
        .open_files
        .hard
        .is_some_and(|hard| hard < ENOUGH_FILES)
    {
        advice.push(format!(
            "open files are limited to {}: a merge takes up to six per input, and several passes with fewer; raise \
             `ulimit -n` for merges of many SSTables",
            findings.open_files.hard.unwrap_or_default()
        ));
    }
    let read_ahead_kb = findings.device.as_ref().and_then(|d| d.read_ahead_kb);
    if let Some(kb) = read_ahead_kb.filter(|kb| *kb < LONG_READAHEAD_KB) {
        let instead = if findings.direct_io.works() {
            "direct reads do not depend on it (--readahead)"
        } else {
            "a merge asks for longer reads by itself"
        };
        advice.push(format!(
            "the kernel reads {kb} KiB ahead of buffered reads; {instead}"
        ));
    }
    advice
}

#[cfg(test)]
mod tests {
    use super::super::findings::{Auto, Chosen, Finding, Limit, Mount};
    use super::*;

    fn finding(status: Status) -> Finding {
        Finding {
            status,
            reason: None,
        }
    }

    /// A directory where everything works.
    fn healthy() -> Findings {
        let chosen = Chosen {
            mode: "direct".to_owned(),
            reason: "it works".to_owned(),
        };
        let limit = Limit {
            soft: None,
            hard: None,
        };
        Findings {
            directory: "/data".into(),
            writable: finding(Status::Works),
            kernel: "6.18.0".to_owned(),
            mount: None,
            device: None,
            direct_io: finding(Status::Works),
            direct_io_alignment: None,
            io_uring: finding(Status::Works),
            dontcache: finding(Status::Works),
            cachestat: finding(Status::Works),
            page_counts: finding(Status::Works),
            locked_memory_bytes: limit,
            open_files: limit,
            multi_generational_lru: None,
            auto: Auto {
                read: chosen.clone(),
                write: chosen.clone(),
                backend: chosen,
            },
            advice: Vec::new(),
        }
    }

    #[test]
    fn there_is_no_advice_if_everything_works() {
        assert_eq!(advice(&healthy()), Vec::<String>::new());
    }

    #[test]
    fn each_lack_has_its_sentence() {
        type Change = fn(&mut Findings);
        let cases: [(Change, &str); 8] = [
            (|f| f.direct_io.status = Status::Fails, "auto uses dontneed"),
            (
                |f| f.direct_io.status = Status::Unknown,
                "nothing could be tried",
            ),
            (|f| f.writable.status = Status::Fails, "inputs only"),
            (|f| f.io_uring.status = Status::Fails, "--backend threads"),
            (|f| f.dontcache.status = Status::Fails, "6.14"),
            (|f| f.cachestat.status = Status::Fails, "mincore"),
            (|f| f.page_counts.status = Status::Fails, "unknown"),
            (|f| f.open_files.hard = Some(1024), "limited to 1024"),
        ];
        for (change, part) in cases {
            let mut findings = healthy();
            change(&mut findings);
            let printed = advice(&findings);
            assert!(
                printed.len() == 1 && printed[0].contains(part),
                "{part}: {printed:?}"
            );
        }
    }

    #[test]
    fn memory_is_no_disk() {
        let mut findings = healthy();
        findings.direct_io.status = Status::Fails;
        findings.mount = Some(Mount {
            file_system: "tmpfs".to_owned(),
            mounted_on: "/dev/shm".to_owned(),
            source: "tmpfs".to_owned(),
            options: "rw".to_owned(),
        });
        let printed = advice(&findings);
        assert!(
            printed.len() == 1 && printed[0].contains("in memory"),
            "{printed:?}"
        );
    }
}
