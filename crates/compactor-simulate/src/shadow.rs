//! Rows that a merge leaves out since it has a newer version or a deletion of them.

use crate::cohort::{Cohort, joined};
use crate::segments::Part;
use crate::stored::Stored;

/// Newest versions of the rows of a segment, whose inputs are independent of each other: a row is in one with a
/// probability that does not depend on whether it is in another.
pub(crate) fn newest(inputs: &[&Stored], parts: &[Part]) -> Vec<Cohort> {
    let cohorts = |part: &Part| inputs[part.input].cohorts.iter();
    let has_cover = |part| cohorts(part).any(|cohort| cohort.cover > 0.0);
    let all = parts.iter().enumerate().flat_map(|(at, part)| {
        let scaled = move |cohort: &Cohort| (at, cohort.scaled(part.rows, part.coverage));
        cohorts(part).map(scaled)
    });
    if parts.len() < 2 || !parts.iter().any(has_cover) {
        return joined(all.map(|(_, cohort)| cohort).collect());
    }
    let mut all: Vec<(usize, Cohort)> = all.collect();
    // From new to old within a class; of equal ones the later input counts as newer.
    all.sort_by(|a, b| {
        let by_class = a.1.class.cmp(&b.1.class);
        by_class
            .then(b.1.newest_us.cmp(&a.1.newest_us))
            .then(b.0.cmp(&a.0))
    });
    let mut covered = vec![0.0; parts.len()];
    let mut class = None;
    for (input, cohort) in &mut all {
        if class != Some(cohort.class) {
            class = Some(cohort.class);
            covered.fill(0.0);
        }
        let others = covered
            .iter()
            .enumerate()
            .filter(|(other, _)| other != input);
        let remaining: f64 = others.map(|(_, cover)| 1.0 - cover).product();
        if let Some(own) = covered.get_mut(*input) {
            // The versions of one input are of different rows.
            *own = f64::min(*own + cohort.cover, 1.0);
        }
        *cohort = cohort.scaled(remaining, remaining);
    }
    joined(all.into_iter().map(|(_, cohort)| cohort).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cohort::Kind;
    use crate::stored::Range;

    fn cohort(bucket: u32, rows: f64, cover: f64) -> Cohort {
        Cohort {
            class: 0,
            kind: Kind::Live,
            bucket,
            oldest_us: i64::from(bucket),
            newest_us: i64::from(bucket),
            rows,
            cover,
        }
    }

    fn rows(sources: &[&[Cohort]]) -> Vec<f64> {
        let range = Range { start: 0, end: 1 };
        let stored = |cohorts: &&[Cohort]| Stored::new(range, cohorts.to_vec(), 0);
        let inputs: Vec<Stored> = sources.iter().map(stored).collect();
        let part = |input| Part {
            input,
            rows: 1.0,
            coverage: 1.0,
        };
        let parts: Vec<Part> = (0..inputs.len()).map(part).collect();
        let merged = newest(&inputs.iter().collect::<Vec<_>>(), &parts);
        merged.iter().map(|cohort| cohort.rows).collect()
    }

    #[test]
    fn the_newest_version_of_each_row_remains() {
        // Of 100 rows, each of three inputs has half.
        let [a, b, c] = [1, 2, 3].map(|bucket| [cohort(bucket, 50.0, 0.5)]);
        assert_eq!(rows(&[&a, &b, &c]), [12.5, 25.0, 50.0]);
        // In two steps it is the same: together they have 1 − 1/8 of the rows.
        let two = [cohort(1, 25.0, 0.25), cohort(2, 50.0, 0.5)];
        assert_eq!(rows(&[&two, &c]), [12.5, 25.0, 50.0]);
    }

    #[test]
    fn inserts_overwrite_nothing() {
        let [a, b] = [1, 2].map(|bucket| [cohort(bucket, 50.0, 0.0)]);
        assert_eq!(rows(&[&a, &b]), [50.0, 50.0]);
    }
}
