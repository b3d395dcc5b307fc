use super::*;

#[test]
fn medians() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0]), Some(3.0));
    assert_eq!(median(&[5.0, 1.0, 3.0]), Some(3.0));
    assert_eq!(median(&[5.0, 1.0, 3.0, 4.0]), Some(3.5));
    assert_eq!(median(&[f64::NAN, 2.0, f64::INFINITY]), Some(2.0));
    let spread = Spread::of(&[2.0, f64::NAN, 9.0, 4.0]).unwrap();
    assert_eq!(
        (spread.repeats, spread.median, spread.least, spread.most),
        (3, 4.0, 2.0, 9.0)
    );
    assert_eq!(Spread::of(&[f64::NAN]), None);
}

#[test]
fn a_disturbance_of_both_arms_of_a_repeat_cancels_out() {
    // Twice as slow in each repeat, while the repeats differ tenfold.
    let pairs = [
        (2.0, 1.0),
        (20.0, 10.0),
        (6.0, 3.0),
        (14.0, 7.0),
        (4.0, 2.0),
    ];
    let ratio = paired_ratio(&pairs, 1).unwrap();
    assert_eq!((ratio.ratio, ratio.low, ratio.high), (2.0, 2.0, 2.0));
    assert!(ratio.paired && ratio.differs());
    let (arm, other): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
    let apart = unpaired_ratio(&arm, &other, 1).unwrap();
    assert_eq!(apart.ratio, 2.0);
    assert!(apart.low < 1.0 && apart.high > 4.0, "{apart:?}");
    assert!(!apart.differs());
}

/// The interval of a single repeat is the repeat itself, which says nothing about how much repeats differ.
#[test]
fn a_single_repeat_shows_no_difference() {
    let paired = |repeats: usize| paired_ratio(&vec![(2.0, 1.0); repeats], 1).unwrap();
    assert!(!paired(1).differs() && paired(2).differs());
    assert!(!unpaired_ratio(&[2.0], &[1.0], 1).unwrap().differs());
}

/// Exact bootstrap interval of the median of an odd number of values: a resample's median is at most the
/// k-th of n values if a binomial of n draws at k / n is at least half of n (Efron 1979).
fn exact_interval(sorted: &[f64]) -> (f64, f64) {
    let n = sorted.len();
    let choose = |k: usize| (0..k).fold(1.0, |c, i| c * (n - i) as f64 / (i + 1) as f64);
    let at_most = |k: usize| -> f64 {
        let p = k as f64 / n as f64;
        let term = |j: usize| choose(j) * p.powi(j as i32) * (1.0 - p).powi((n - j) as i32);
        (n.div_ceil(2)..=n).map(term).sum()
    };
    let quantile = |q: f64| sorted[(1..=n).find(|&k| at_most(k) >= q).unwrap() - 1];
    (quantile(0.025), quantile(0.975))
}

#[test]
fn intervals_equal_the_exact_bootstrap() {
    for n in [3, 5, 7, 9, 11, 21] {
        let values: Vec<f64> = (0..n).map(|i| 1.0 + f64::from(i * i)).collect();
        let pairs: Vec<(f64, f64)> = values.iter().map(|&v| (v, 1.0)).collect();
        let ratio = paired_ratio(&pairs, 42).unwrap();
        assert_eq!((ratio.low, ratio.high), exact_interval(&values), "{n}");
        assert_eq!(ratio.ratio, values[values.len() / 2]);
    }
}

#[test]
fn a_seed_gives_the_same_interval_again() {
    let arm = [1.0, 1.3, 1.1, 1.9, 1.2, 1.4];
    let other = [0.9, 1.0, 1.4, 1.05, 0.8, 0.7];
    let first = unpaired_ratio(&arm, &other, 9);
    assert_eq!(first, unpaired_ratio(&arm, &other, 9));
    assert!(first.is_some());
}

#[test]
fn there_is_no_ratio_without_values() {
    assert_eq!(paired_ratio(&[], 1), None);
    assert_eq!(
        paired_ratio(&[(1.0, 0.0), (0.0, 1.0), (f64::NAN, 1.0)], 1),
        None
    );
    assert_eq!(unpaired_ratio(&[1.0], &[], 1), None);
    assert_eq!(unpaired_ratio(&[1.0], &[0.0], 1), None);
    // The remaining runs of a repeat count.
    let ratio = paired_ratio(&[(1.0, 0.0), (3.0, 2.0)], 1).unwrap();
    assert_eq!((ratio.ratio, ratio.repeats), (1.5, 1));
}

#[test]
fn few_repeats_give_no_certainty() {
    assert_eq!(median_range_confidence(0), 0.0);
    assert_eq!(median_range_confidence(1), 0.0);
    assert_eq!(median_range_confidence(3), 0.75);
    assert_eq!(median_range_confidence(5), 0.9375);
    assert!(median_range_confidence(6) > CONFIDENCE);
}

#[test]
fn outliers_are_found_and_noise_is_not() {
    assert_eq!(outliers(&[1.0, 1.1, 0.9, 1.05, 9.0]), [4]);
    assert_eq!(outliers(&[1.0, 1.0, 1.0, 5.0, 1.0, 1.0]), [3]);
    assert!(outliers(&[1.0, 1.2, 0.8, 1.1, 1.4]).is_empty());
    assert!(outliers(&[1.0; 8]).is_empty());
    // Four values are too few to identify an outlier.
    assert!(outliers(&[1.0, 1.1, 0.9, 9.0]).is_empty());
}
