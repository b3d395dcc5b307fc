//! Parts of the JSON output of fio.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::FioJob;

#[derive(Debug, Deserialize)]
struct Document {
    jobs: Vec<Job>,
}

#[derive(Debug, Deserialize)]
struct Job {
    jobname: String,
    #[serde(default)]
    error: i64,
    #[serde(default)]
    read: Direction,
    #[serde(default)]
    write: Direction,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Direction {
    io_bytes: u64,
    /// Milliseconds.
    runtime: u64,
    total_ios: u64,
    lat_ns: Latencies,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Latencies {
    max: f64,
    mean: f64,
    percentile: BTreeMap<String, f64>,
}

/// Jobs in the output of fio. Older releases print messages before the document.
///
/// # Errors
/// If there is no such document, or a job in it failed.
pub(super) fn jobs(printed: &str) -> Result<Vec<FioJob>, String> {
    let start = printed.find("\n{");
    let start = start.or_else(|| printed.starts_with('{').then_some(0));
    let text = start.map_or("", |at| &printed[at..]);
    // Only the first value: what follows it are messages, too.
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Document>();
    let document = match values.next() {
        Some(Ok(document)) => document,
        Some(Err(e)) => return Err(format!("the output of fio is not as expected: {e}")),
        None => return Err("fio printed no JSON".to_owned()),
    };
    if let Some(failed) = document.jobs.iter().find(|job| job.error != 0) {
        let error = i32::try_from(failed.error).unwrap_or(0);
        let error = std::io::Error::from_raw_os_error(error);
        return Err(format!("job {}: {error}", failed.jobname));
    }
    Ok(document.jobs.iter().map(job).collect())
}

fn job(job: &Job) -> FioJob {
    let of = if job.write.io_bytes > job.read.io_bytes {
        &job.write
    } else {
        &job.read
    };
    let seconds = of.runtime as f64 / 1000.0;
    let per_second = |number: u64| {
        if seconds > 0.0 {
            number as f64 / seconds
        } else {
            0.0
        }
    };
    let percentile = |wanted: f64| {
        let mut all = of.lat_ns.percentile.iter();
        let found = all.find(|(key, _)| key.parse().is_ok_and(|p: f64| (p - wanted).abs() < 1e-6));
        found.map_or(0.0, |(_, ns)| *ns)
    };
    FioJob {
        name: job.jobname.clone(),
        bytes_per_s: per_second(of.io_bytes),
        requests_per_s: per_second(of.total_ios),
        mean_ns: of.lat_ns.mean,
        p50_ns: percentile(50.0),
        p99_ns: percentile(99.0),
        p999_ns: percentile(99.9),
        max_ns: of.lat_ns.max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = r#"note: both iodepth >= 1 and synchronous I/O engine are selected
{"fio version":"fio-3.33","jobs":[
{"jobname":"foreground","groupid":0,"error":0,
 "read":{"io_bytes":1638400,"bw_bytes":1636763,"runtime":1000,"total_ios":100,
  "lat_ns":{"min":76443,"max":10522342,"mean":561337.61,"stddev":1512660.3,"N":100,
   "percentile":{"50.000000":238592,"95.000000":1777664,"99.000000":10027008,"99.900000":10551296}}},
 "write":{"io_bytes":0,"runtime":0,"total_ios":0,"lat_ns":{"min":0,"max":0,"mean":0.0}}},
{"jobname":"compaction-output","error":0,"read":{},
 "write":{"io_bytes":8388608,"runtime":2000,"total_ios":8,"lat_ns":{"max":7,"mean":5.0}}}]}
fio: something at the end"#;

    #[test]
    fn jobs_are_found_among_messages() {
        let jobs = jobs(PRINTED).unwrap();
        assert_eq!(jobs.len(), 2);
        assert_eq!(
            (
                jobs[0].p50_ns,
                jobs[0].p99_ns,
                jobs[0].p999_ns,
                jobs[0].max_ns
            ),
            (238_592.0, 10_027_008.0, 10_551_296.0, 10_522_342.0)
        );
        assert_eq!(
            (jobs[0].requests_per_s, jobs[0].bytes_per_s),
            (100.0, 1_638_400.0)
        );
        assert_eq!(
            (jobs[1].name.as_str(), jobs[1].bytes_per_s),
            ("compaction-output", 4_194_304.0)
        );
    }

    #[test]
    fn a_document_that_is_not_a_result_is_an_error() {
        assert!(jobs("").unwrap_err().contains("no JSON"));
        assert!(
            jobs("{\"jobs\":7}")
                .unwrap_err()
                .contains("not as expected")
        );
        assert!(jobs("{\"jobs\":[").unwrap_err().contains("not as expected"));
        let failed = PRINTED.replacen("\"error\":0", "\"error\":95", 1);
        let error = jobs(&failed).unwrap_err();
        assert!(
            error.contains("foreground: Operation not supported"),
            "{error}"
        );
    }
}
