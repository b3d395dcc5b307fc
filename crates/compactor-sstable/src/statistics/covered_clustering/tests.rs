use super::*;

fn int_type() -> HeaderType {
    HeaderType::new(CqlType::Int32)
}

fn comparator() -> ClusteringComparator {
    ClusteringComparator::new(&[CqlType::Int32, CqlType::Utf8]).unwrap()
}

fn feed(tracker: &mut CoveredClusteringTracker, kind: Kind, values: &[Option<&[u8]>]) {
    let comparator = comparator();
    let mut base = Vec::new();
    comparator.write_values(&mut base, values.iter().copied());
    let (mut pos, mut spans) = (0, Vec::new());
    assert!(
        comparator
            .parse_values(&base, &mut pos, values.len(), &mut spans)
            .is_ok()
    );
    tracker.update(
        &comparator,
        Prefix {
            kind,
            base: &base,
            spans: &spans,
        },
    );
}

const ONE: Option<&[u8]> = Some(&[0, 0, 0, 1]);
const TWO: Option<&[u8]> = Some(&[0, 0, 0, 2]);
const THREE: Option<&[u8]> = Some(&[0, 0, 0, 3]);

fn first_values(covered: &CoveredClustering) -> (Option<u8>, Option<u8>) {
    let of = |bound: &ClusteringBound| {
        bound
            .values
            .first()
            .and_then(|v| v.as_ref())
            .and_then(|v| v.last().copied())
    };
    (of(&covered.start), of(&covered.end))
}

#[test]
fn rows_give_inclusive_bounds() {
    let mut tracker = CoveredClusteringTracker::new();
    for value in [TWO, ONE, THREE, TWO] {
        feed(&mut tracker, Kind::Clustering, &[value, Some(b"x")]);
    }
    let covered = tracker.finish(vec![int_type()]);
    assert_eq!(first_values(&covered), (Some(1), Some(3)));
    assert_eq!(
        (covered.start.kind, covered.end.kind),
        (Kind::InclStartBound, Kind::InclEndBound)
    );
    assert_eq!(covered.end.values[1].as_deref(), Some(b"x".as_slice()));
}

#[test]
fn starts_only_lower_and_ends_only_raise() {
    let mut tracker = CoveredClusteringTracker::new();
    feed(&mut tracker, Kind::ExclStartBound, &[TWO]);
    feed(&mut tracker, Kind::InclEndExclStartBoundary, &[THREE]);
    feed(&mut tracker, Kind::ExclEndBound, &[THREE]);
    feed(&mut tracker, Kind::InclEndBound, &[ONE]);
    let covered = tracker.finish(Vec::new());
    assert_eq!(first_values(&covered), (Some(2), Some(3)));
    assert_eq!(
        (covered.start.kind, covered.end.kind),
        (Kind::ExclStartBound, Kind::ExclEndBound)
    );
}

#[test]
fn nothing_covered() {
    let covered = CoveredClusteringTracker::new().finish(Vec::new());
    assert_eq!(
        (covered.start.kind, covered.end.kind),
        (Kind::ExclStartBound, Kind::ExclEndBound)
    );
    let mut out = Vec::new();
    assert_eq!(covered.write(&mut out, Version::Nb).unwrap(), 0);
    assert_eq!(out, [0; 8]);
    assert_eq!(
        CoveredClustering::parse(&mut ByteReader::new(&out), Version::Nb).unwrap(),
        CoveredClustering::all()
    );
}

#[test]
fn slice_round_trip_and_truncation() {
    let covered = CoveredClustering {
        types: vec![int_type(), HeaderType::new(CqlType::Utf8)],
        start: ClusteringBound {
            kind: Kind::InclStartBound,
            values: vec![Some(vec![0, 0, 0, 1]), Some(Vec::new())],
        },
        end: ClusteringBound {
            kind: Kind::ExclEndBound,
            values: vec![None],
        },
    };
    let mut out = Vec::new();
    covered.write(&mut out, Version::Oa).unwrap();
    let parsed = CoveredClustering::parse(&mut ByteReader::new(&out), Version::Oa).unwrap();
    assert_eq!(parsed, covered);
    for len in 0..out.len() {
        let mut reader = ByteReader::new(&out[..len]);
        assert!(
            CoveredClustering::parse(&mut reader, Version::Oa).is_err(),
            "{len}"
        );
    }
}

#[test]
fn an_end_is_no_start() {
    for (start, end) in [(6u8, 6u8), (1, 1), (2, 6), (4, 6), (1, 5)] {
        let bytes = [0, start, 0, 0, end, 0, 0];
        assert!(CoveredClustering::parse(&mut ByteReader::new(&bytes), Version::Oa).is_err());
    }
    let good = [0, 1, 0, 0, 6, 0, 0];
    assert_eq!(
        CoveredClustering::parse(&mut ByteReader::new(&good), Version::Oa).unwrap(),
        CoveredClustering::all()
    );
}

#[test]
fn the_old_form_ends_at_a_null() {
    let mut covered = CoveredClustering::all();
    covered.start.values = vec![Some(b"a".to_vec()), None, Some(b"bc".to_vec())];
    let mut out = Vec::new();
    assert_eq!(covered.write(&mut out, Version::Nb).unwrap(), 2 + 4);
    assert_eq!(out, [0, 0, 0, 1, 0, 1, b'a', 0, 0, 0, 0]);
    let parsed = CoveredClustering::parse(&mut ByteReader::new(&out), Version::Md).unwrap();
    assert_eq!(parsed.start.values, [Some(b"a".to_vec())]);
    let ignored = CoveredClustering::parse(&mut ByteReader::new(&out), Version::Mc).unwrap();
    assert_eq!(ignored, CoveredClustering::all());
    covered.start.values = vec![Some(vec![0; 65_536])];
    assert!(covered.write(&mut Vec::new(), Version::Nb).is_err());
}
