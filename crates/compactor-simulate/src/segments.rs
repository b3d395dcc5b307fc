//! Token ranges within which the inputs of a merge are the same.

use crate::stored::Range;

/// Part of all tokens of a merge below which a segment is joined with its neighbour: flushed SSTables begin
/// and end at slightly different tokens.
const SMALLEST_PART: f64 = 1.0 / 2048.0;

/// An input in a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    /// Index of the input.
    pub(crate) input: usize,
    /// Part of its rows that are in the segment.
    pub(crate) rows: f64,
    /// Part of the segment that it covers.
    pub(crate) coverage: f64,
}

/// Tokens, and the inputs that have them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Segment {
    pub(crate) range: Range,
    pub(crate) parts: Vec<Part>,
}

/// Divides the tokens of inputs into segments, ascending; those without inputs are left out.
pub(crate) fn segments(inputs: &[Range]) -> Vec<Segment> {
    let bounds = bounds(inputs);
    let ranges = bounds.windows(2).map(|ends| Range {
        start: ends[0],
        end: ends[1],
    });
    let mut segments: Vec<Segment> = ranges
        .map(|range| Segment {
            range,
            parts: Vec::new(),
        })
        .collect();
    for (input, range) in inputs.iter().enumerate() {
        let start = segments.partition_point(|segment| segment.range.end <= range.start);
        for segment in segments.iter_mut().skip(start) {
            if segment.range.start >= range.end {
                break;
            }
            segment.parts.push(Part {
                input,
                rows: range.part_in(segment.range),
                coverage: segment.range.part_in(*range),
            });
        }
    }
    segments.retain(|segment| !segment.parts.is_empty());
    segments
}

/// First and last tokens of inputs, ascending, without those that are close to another.
fn bounds(inputs: &[Range]) -> Vec<i128> {
    let mut bounds: Vec<i128> = inputs.iter().flat_map(|r| [r.start, r.end]).collect();
    bounds.sort_unstable();
    let (Some(&first), Some(&last)) = (bounds.first(), bounds.last()) else {
        return bounds;
    };
    let smallest = ((last - first) as f64 * SMALLEST_PART) as i128;
    let mut kept = first;
    bounds.retain(|&bound| {
        let is_end = bound == first || bound == last;
        let is_kept = is_end || (bound - kept > smallest && last - bound > smallest);
        if is_kept {
            kept = bound;
        }
        is_kept
    });
    bounds.dedup();
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: i128, end: i128) -> Range {
        Range { start, end }
    }

    #[test]
    fn each_segment_has_its_inputs() {
        let found = segments(&[range(0, 100), range(50, 150), range(200, 300)]);
        let inputs = |segment: &Segment| -> Vec<(usize, f64)> {
            segment.parts.iter().map(|p| (p.input, p.rows)).collect()
        };
        let ranges: Vec<Range> = found.iter().map(|segment| segment.range).collect();
        assert_eq!(
            ranges,
            [
                range(0, 50),
                range(50, 100),
                range(100, 150),
                range(200, 300)
            ]
        );
        assert_eq!(inputs(&found[0]), [(0, 0.5)]);
        assert_eq!(inputs(&found[1]), [(0, 0.5), (1, 0.5)]);
        assert_eq!(inputs(&found[3]), [(2, 1.0)]);
    }

    #[test]
    fn all_rows_are_in_a_segment() {
        let inputs = [
            range(3, 9_997),
            range(1, 9_999),
            range(5_000, 5_002),
            range(0, 10_000),
        ];
        let found = segments(&inputs);
        assert_eq!(found.len(), 2, "{found:?}");
        for input in 0..inputs.len() {
            let parts = found.iter().flat_map(|segment| &segment.parts);
            let rows: f64 = parts.filter(|p| p.input == input).map(|p| p.rows).sum();
            assert!((rows - 1.0).abs() < 1e-9, "{input}: {rows}");
        }
    }
}
