use super::*;

fn compaction(arm: &str) -> CompactionRecord {
    let (read, write) = arm.split_once('/').unwrap();
    CompactionRecord {
        rounds: 1,
        elapsed_s: 20.0,
        input_bytes: 1 << 30,
        input_uncompressed_bytes: 2 << 30,
        data_file_bytes: 1 << 30,
        output_bytes: 1 << 30,
        stored_bytes_per_s: 5e7,
        uncompressed_bytes_per_s: 1e8,
        throughput_limit_bytes_per_s: None,
        read_mode: read.to_owned(),
        write_mode: Some(write.to_owned()),
        backend: "uring".to_owned(),
        fallbacks: Vec::new(),
        input_pages: 100_000,
        input_pages_before: Some(20_000),
        // The bystander has brought back pages of the index.
        input_pages_after: Some(24_000),
        cold_pages: 70_000,
        cold_pages_before: Some(3000),
        cold_pages_after: Some(3100),
        output_pages: 50_000,
        output_pages_after: Some(0),
    }
}

fn reads() -> Latency {
    Latency {
        operations: 1000,
        intended_per_s: 100.0,
        achieved_per_s: 99.0,
        ..Latency::default()
    }
}

fn kinds(arm: &str, compaction: &CompactionRecord, change: impl FnOnce(&mut Facts<'_>)) -> String {
    let reads = reads();
    let hot = HotSetRecord {
        pages: 1000,
        resident_before: Some(1000),
        ..HotSetRecord::default()
    };
    let mut facts = Facts {
        arm: arm.parse().unwrap(),
        compaction: Some(compaction),
        least_compaction: Duration::from_secs(10),
        before: &reads,
        during: &reads,
        after: &reads,
        first_error: None,
        is_unfinished: false,
        rows_not_found: 0,
        wake_up_p99: Duration::from_millis(1),
        hot: &hot,
        pressure: 0.5,
        kept_cgroup: Some(true),
    };
    change(&mut facts);
    let found = judge(&facts);
    let words: Vec<&str> = found.iter().map(|reason| reason.kind.as_str()).collect();
    words.join(" ")
}

#[test]
fn a_run_that_did_what_it_claims_counts() {
    for arm in ["buffered/buffered", "direct/direct", "dontneed/dontcache"] {
        assert_eq!(kinds(arm, &compaction(arm), |_| ()), "", "{arm}");
    }
    let mut cached = compaction("buffered/trickle");
    cached.output_pages_after = Some(50_000);
    cached.cold_pages_after = Some(70_000);
    assert_eq!(kinds("buffered/trickle", &cached, |_| ()), "");
}

#[test]
fn a_fallback_is_rejected() {
    let fell_back = compaction("dontneed/direct");
    assert_eq!(kinds("direct/direct", &fell_back, |_| ()), "fallback");
    let mut nothing = compaction("direct/direct");
    nothing.write_mode = None;
    assert_eq!(kinds("direct/direct", &nothing, |_| ()), "fallback");
}

#[test]
fn pages_left_where_none_should_be_are_rejected() {
    let mut left = compaction("direct/direct");
    left.output_pages_after = Some(1);
    assert_eq!(kinds("direct/direct", &left, |_| ()), "pages_left");
    left.write_mode = Some("dontneed".to_owned());
    assert_eq!(kinds("direct/dontneed", &left, |_| ()), "");
    left.output_pages_after = Some(501);
    assert_eq!(kinds("direct/dontneed", &left, |_| ()), "pages_left");
    let mut read = compaction("direct/direct");
    read.cold_pages_after = Some(4400);
    assert_eq!(kinds("direct/direct", &read, |_| ()), "");
    read.cold_pages_after = Some(4401);
    assert_eq!(kinds("direct/direct", &read, |_| ()), "pages_left");
}

#[test]
fn what_cannot_be_trusted_is_rejected() {
    let arm = "direct/direct";
    let mut short = compaction(arm);
    short.elapsed_s = 9.9;
    assert_eq!(kinds(arm, &short, |_| ()), "compaction_too_short");
    let good = compaction(arm);
    let late = Duration::from_millis(21);
    assert_eq!(
        kinds(arm, &good, |f| f.wake_up_p99 = late),
        "generator_late"
    );
    assert_eq!(
        kinds(arm, &good, |f| f.is_unfinished = true),
        "generator_late"
    );
    let slow = Latency {
        achieved_per_s: 90.0,
        ..reads()
    };
    // Beside a compaction that is a result, alone it is not.
    assert_eq!(
        kinds(arm, &good, |f| {
            let slow: &Latency = Box::leak(Box::new(slow.clone()));
            f.during = slow;
        }),
        ""
    );
    assert_eq!(
        kinds(arm, &good, |f| {
            let slow: &Latency = Box::leak(Box::new(slow.clone()));
            f.before = slow;
        }),
        "generator_late"
    );
    assert_eq!(
        kinds(arm, &good, |f| f.first_error = Some("no row")),
        "reads_failed"
    );
    assert_eq!(kinds(arm, &good, |f| f.rows_not_found = 30), "");
    assert_eq!(kinds(arm, &good, |f| f.rows_not_found = 31), "reads_failed");
    assert_eq!(
        kinds(arm, &good, |f| f.kept_cgroup = Some(false)),
        "memory_limit_lost"
    );
    let cold = HotSetRecord {
        pages: 1000,
        resident_before: Some(900),
        ..HotSetRecord::default()
    };
    let cold: &HotSetRecord = Box::leak(Box::new(cold));
    assert_eq!(kinds(arm, &good, |f| f.hot = cold), "hot_set_not_warm");
    // It cannot be warm where it has no room.
    assert_eq!(
        kinds(arm, &good, |f| {
            f.hot = cold;
            f.pressure = 2.0;
        }),
        ""
    );
}
