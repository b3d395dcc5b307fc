//! Figures of arms over their repeats, and how they compare.

use serde::Serialize;

use super::{ArmKind, ArmOutcome, BenchOutcome, BenchRun, CodecTimes};
use crate::stats::{Ratio, Spread, ratio_of_repeats};

/// The figures of an arm.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmFigures {
    /// The arm.
    pub name: String,
    /// Seconds.
    pub wall_s: Spread,
    /// Uncompressed bytes of the inputs per second of the median.
    pub uncompressed_bytes_per_s: f64,
    /// Processor seconds.
    pub cpu_s: Spread,
    /// Largest resident set.
    pub peak_rss_bytes: Option<Spread>,
    /// Seconds as a multiple of the first arm's, each compared with that of the same repeat.
    pub to_first: Option<Ratio>,
    /// Seconds as a multiple of the codec's, likewise.
    pub to_codec: Option<Ratio>,
}

/// Figures of each arm that has a run that counts.
pub(super) fn of(outcome: &BenchOutcome) -> Vec<ArmFigures> {
    let first = outcome.arms.first();
    let codec = outcome.arms.iter().find(|arm| arm.kind == ArmKind::Codec);
    let ratio = |arm: &ArmOutcome, base: Option<&ArmOutcome>| {
        let base = base.filter(|base| base.name != arm.name)?;
        let walls = |arm: &ArmOutcome| -> Vec<(u32, f64)> {
            arm.counted().map(|run| (run.repeat, run.wall_s)).collect()
        };
        let ratio = ratio_of_repeats(&walls(arm), &walls(base), outcome.options.seed)?;
        Some(ratio).filter(|ratio| ratio.paired)
    };
    let of_arm = |arm: &ArmOutcome| {
        let numbers = |of: &dyn Fn(&BenchRun) -> Option<f64>| {
            Spread::of(&arm.counted().filter_map(of).collect::<Vec<f64>>())
        };
        let wall_s = numbers(&|run| Some(run.wall_s))?;
        Some(ArmFigures {
            name: arm.name.clone(),
            uncompressed_bytes_per_s: outcome.data.uncompressed_bytes as f64
                / wall_s.median.max(1e-9),
            wall_s,
            cpu_s: numbers(&|run| Some(run.cpu_s))?,
            peak_rss_bytes: numbers(&|run| run.peak_rss_bytes.map(|bytes| bytes as f64)),
            to_first: ratio(arm, first),
            to_codec: ratio(arm, codec),
        })
    };
    outcome.arms.iter().filter_map(of_arm).collect()
}

/// Time that the codec would take for all of it, by its sample: seconds, and processor seconds. Inputs are
/// decompressed and outputs compressed, of which there may be less.
pub fn at_scale(times: &CodecTimes, input_bytes: u64, output_bytes: u64) -> (f64, f64) {
    let sample = times.sample_bytes.max(1) as f64;
    let (input, output) = (input_bytes as f64 / sample, output_bytes as f64 / sample);
    (
        times.decompress_s * input + times.compress_s * output,
        times.decompress_cpu_s * input + times.compress_cpu_s * output,
    )
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::outcome;
    use super::*;

    #[test]
    fn the_codec_is_scaled_by_what_is_read_and_what_is_written() {
        let times = CodecTimes {
            sample_bytes: 100,
            passes: 3,
            decompress_s: 0.5,
            compress_s: 2.0,
            decompress_cpu_s: 1.0,
            compress_cpu_s: 4.0,
        };
        assert_eq!(at_scale(&times, 100, 100), (2.5, 5.0));
        assert_eq!(at_scale(&times, 1000, 750), (5.0 + 15.0, 10.0 + 30.0));
        assert_eq!(at_scale(&times, 200, 0), (1.0, 2.0));
    }

    #[test]
    fn arms_are_compared_within_repeats_and_warm_ups_do_not_count() {
        let outcome = outcome();
        let figures = of(&outcome);
        let names: Vec<&str> = figures.iter().map(|f| f.name.as_str()).collect();
        // The arm that failed at once has none.
        assert_eq!(
            names,
            ["merge direct/direct", "copy direct/direct", "codec"]
        );
        let [merge, copy, codec] = &figures[..] else {
            panic!("{figures:?}");
        };
        assert_eq!((merge.wall_s.median, merge.wall_s.repeats), (2.0, 3));
        assert_eq!((merge.wall_s.least, merge.wall_s.most), (1.0, 4.0));
        assert_eq!(merge.uncompressed_bytes_per_s, 500e6);
        assert_eq!(merge.to_first, None);
        // 1/0.5, 2/1, 4/2: the machine became slower from repeat to repeat, and this is not seen here.
        let to_codec = merge.to_codec.unwrap();
        assert_eq!(
            (to_codec.ratio, to_codec.low, to_codec.high),
            (2.0, 2.0, 2.0)
        );
        assert_eq!(copy.to_first.unwrap().ratio, 1.5);
        assert_eq!(codec.to_codec, None);
        assert_eq!(codec.peak_rss_bytes, None);
    }
}
