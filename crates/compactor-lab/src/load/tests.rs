use super::*;

/// A read that takes about 50 us.
fn quick() -> Result<(), String> {
    let until = Instant::now() + Duration::from_micros(50);
    while Instant::now() < until {
        std::hint::spin_loop();
    }
    Ok(())
}

/// Guards against coordinated omission: a closed loop would count one read of 200 ms among thousands and show
/// nothing at p99.9. Here about 5 percent of the reads of two seconds were due while no thread could start them.
#[test]
fn a_stall_shows_in_all_delayed_reads() {
    let mut count = 0;
    let load = Load::start(1, Pace::Open { per_s: 500.0 }, 1, |_| {
        move || {
            count += 1;
            if count == 300 {
                std::thread::sleep(Duration::from_millis(200));
            }
            quick()
        }
    })
    .unwrap();
    load.begin_during();
    std::thread::sleep(Duration::from_secs(2));
    load.end_during();
    let result = load.finish();
    let found = result.latency(Phase::During);
    assert!(found.p999_ns > 180_000_000, "{}", found.p999_ns);
    // About 5 percent waited for more than 100 ms, more on a busy machine.
    let beyond = found.operations
        - (found.curve.iter())
            .take_while(|point| point.latency_ns < 100_000_000)
            .last()
            .map_or(0, |point| point.operations);
    assert!(beyond > 25, "{beyond}");
    assert!(found.max_ns > 195_000_000, "{}", found.max_ns);
    assert!(!result.is_unfinished && result.first_error.is_none());
}

#[test]
fn reads_belong_to_the_phase_in_which_they_were_due() {
    let load = Load::start(2, Pace::Open { per_s: 2000.0 }, 2, |_| quick).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    load.begin_during();
    std::thread::sleep(Duration::from_millis(500));
    load.end_during();
    std::thread::sleep(Duration::from_millis(200));
    let interval = load.take_interval();
    let result = load.finish();
    let all: Vec<Latency> = [Phase::Before, Phase::During, Phase::After]
        .map(|phase| result.latency(phase))
        .into();
    // Poisson: approximately 600, 1000 and 400.
    for (found, expected) in all.iter().zip([600.0f64, 1000.0, 400.0]) {
        // The machine may have been slow to wake this thread.
        let expected = expected.max(2000.0 * found.duration_s);
        let deviation = (found.operations as f64 - expected).abs();
        assert!(deviation < 6.0 * expected.sqrt(), "{found:?}");
        assert!(found.min_ns >= 50_000 && found.p50_ns <= found.p99_ns);
        let last = found.curve.last().unwrap();
        assert_eq!(
            (last.operations, last.percentile),
            (found.operations, 100.0)
        );
    }
    let total: u64 = all.iter().map(|found| found.operations).sum();
    // On a busy machine most reads may not have started yet.
    assert!((1..=total).contains(&interval.latency.len()));
}

#[test]
fn failed_reads_are_counted_and_the_first_is_reported() {
    let load = Load::start(1, Pace::Open { per_s: 1000.0 }, 3, |_| {
        || Err("no such row".to_owned())
    })
    .unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let result = load.finish();
    let found = result.latency(Phase::Before);
    assert!(found.errors > 0 && found.operations == 0, "{found:?}");
    assert_eq!(result.first_error.as_deref(), Some("no such row"));
}

#[test]
fn a_load_that_cannot_keep_up_is_reported() {
    let reads = || {
        std::thread::sleep(Duration::from_secs(3));
        Ok(())
    };
    let load = Load::start(1, Pace::Open { per_s: 100.0 }, 4, |_| reads).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let result = load.finish();
    assert!(result.is_unfinished);
}

#[test]
fn in_a_closed_loop_each_read_follows_the_previous_one() {
    let busy = Arc::new(AtomicBool::new(false));
    let load = Load::start(1, Pace::Closed, 5, |_| {
        let busy = Arc::clone(&busy);
        move || {
            assert!(!busy.swap(true, Ordering::Relaxed));
            std::thread::sleep(Duration::from_millis(2));
            busy.store(false, Ordering::Relaxed);
            Ok(())
        }
    })
    .unwrap();
    std::thread::sleep(Duration::from_millis(50));
    load.begin_during();
    std::thread::sleep(Duration::from_millis(200));
    load.end_during();
    let result = load.finish();
    let found = result.latency(Phase::During);
    assert!((1..=100).contains(&found.operations), "{found:?}");
    assert!(found.min_ns >= 2_000_000, "{found:?}");
    assert!(!result.is_unfinished && result.first_error.is_none());
}
