//! Scales of pictures: from values to places, and the values that are marked.

/// A scale from values to places along a line.
#[derive(Clone, Copy, Debug)]
pub(in crate::report) struct Axis {
    least: f64,
    most: f64,
    /// Place of the least value.
    from: f64,
    /// Place of the most.
    to: f64,
    is_log: bool,
}

impl Axis {
    /// Equal steps for equal differences, from 0 to 1.
    pub(in crate::report) fn linear(values: impl Iterator<Item = f64>) -> Axis {
        let (least, most) = range(values.filter(|v| v.is_finite())).unwrap_or((0.0, 1.0));
        let most = if most > least { most } else { least + 1.0 };
        Axis::unit(least, most, false)
    }

    /// Equal steps for equal ratios, from 0 to 1; only positive values have a place. At least `decades`.
    pub(in crate::report) fn log(values: impl Iterator<Item = f64>, decades: f64) -> Axis {
        let positive = values.filter(|v| v.is_finite() && *v > 0.0);
        let (least, most) = range(positive).unwrap_or((1.0, 10.0));
        let (mut least, mut most) = (least.log10(), most.log10());
        let short = decades - (most - least);
        if short > 0.0 {
            least -= short / 2.0;
            most += short / 2.0;
        }
        let air = (most - least) * 0.04;
        Axis::unit(least - air, most + air, true)
    }

    fn unit(least: f64, most: f64, is_log: bool) -> Axis {
        Axis {
            least,
            most,
            from: 0.0,
            to: 1.0,
            is_log,
        }
    }

    /// The scale between two places.
    pub(in crate::report) fn between(self, from: f64, to: f64) -> Axis {
        Axis { from, to, ..self }
    }

    /// Place of a value: an end for one beyond it; `None` for one that has none.
    pub(in crate::report) fn at(&self, value: f64) -> Option<f64> {
        let value = if self.is_log { value.log10() } else { value };
        if !value.is_finite() {
            return None;
        }
        let share = ((value - self.least) / (self.most - self.least)).clamp(0.0, 1.0);
        // Of a span that is greater than any number.
        if share.is_nan() {
            return None;
        }
        Some(self.from + share * (self.to - self.from))
    }

    /// Values to mark, each with its place: round ones, about `most` of them.
    pub(in crate::report) fn ticks_at(&self, most: usize) -> Vec<(f64, f64)> {
        let ticks = if self.is_log {
            self.log_ticks(most)
        } else {
            self.linear_ticks(most)
        };
        let placed = |tick| Some((tick, self.at(tick)?));
        ticks.into_iter().filter_map(placed).collect()
    }

    fn log_ticks(&self, most: usize) -> Vec<f64> {
        let exponents = self.least.floor() as i32..=self.most.ceil() as i32;
        // The finest that are not too many.
        for steps in [
            &[1.0, 2.0, 3.0, 5.0][..],
            &[1.0, 2.0, 5.0],
            &[1.0, 3.0],
            &[1.0],
        ] {
            let inside: Vec<f64> = exponents
                .clone()
                .flat_map(|e| steps.iter().map(move |s| s * 10f64.powi(e)))
                .filter(|v| (self.least..=self.most).contains(&v.log10()))
                .collect();
            if inside.len() <= most.max(2) || steps.len() == 1 {
                return inside;
            }
        }
        Vec::new()
    }

    fn linear_ticks(&self, most: usize) -> Vec<f64> {
        let rough = (self.most - self.least) / most.max(2) as f64;
        // Spans of a file that anybody may have written: no number of steps is right for them.
        if !rough.is_normal() || rough < self.most.abs().max(self.least.abs()) * f64::EPSILON {
            return Vec::new();
        }
        let magnitude = 10f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|s| s * magnitude);
        let step = steps.into_iter().find(|s| *s >= rough).unwrap_or(rough);
        let first = (self.least / step).ceil() as i64;
        let last = (self.most / step).floor() as i64;
        (first..=last).map(|n| n as f64 * step).collect()
    }
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, v| match range {
        None => Some((v, v)),
        Some((least, most)) => Some((least.min(v), most.max(v))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(axis: &Axis, most: usize) -> Vec<f64> {
        axis.ticks_at(most).iter().map(|tick| tick.0).collect()
    }

    #[test]
    fn values_find_their_places() {
        let axis = Axis::linear([0.0, 10.0, f64::NAN].into_iter()).between(100.0, 0.0);
        assert_eq!(axis.at(2.5), Some(75.0));
        assert_eq!((axis.at(-5.0), axis.at(50.0)), (Some(100.0), Some(0.0)));
        assert_eq!(axis.at(f64::NAN), None);
        assert_eq!(ticks(&axis, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        let axis = Axis::log([0.0, 1.0, 1000.0].into_iter(), 1.0).between(0.0, 108.0);
        assert_eq!(axis.at(0.0), None);
        let middle = axis.at(10f64.powf(1.5)).unwrap();
        assert!((middle - 54.0).abs() < 1e-9);
        assert_eq!(ticks(&axis, 5), [1.0, 10.0, 100.0, 1000.0]);
    }

    #[test]
    fn a_span_without_steps_has_no_ticks() {
        for (least, most) in [(0.0, 5e-324), (-1.7e308, 1.7e308), (1e300, 1e300 + 1e285)] {
            let axis = Axis::linear([least, most].into_iter());
            assert!(axis.ticks_at(6).len() < 20, "{least} {most}");
            assert!(axis.at(least).is_none_or(|at| at.is_finite()));
        }
    }

    #[test]
    fn nothing_to_show_still_has_an_axis() {
        let axis = Axis::log(std::iter::empty(), 1.0);
        assert!(!ticks(&axis, 5).is_empty());
        let axis = Axis::linear([7.0].into_iter());
        assert_eq!(axis.at(7.0), Some(0.0));
        assert!(ticks(&axis, 3).len() >= 2);
    }
}
