//! Latency of one phase: its distribution as a compressed HDR histogram, with the most important
//! figures beside it.

use data_encoding::BASE64;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// Latencies in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The number of values.
    pub count: u64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub stdev: f64,
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p99_9: u64,
    /// The 99.99th percentile.
    pub p99_99: u64,
    /// The largest value.
    pub max: u64,
    /// The histogram in HDR's form V2, deflated, in base64.
    pub hdr: String,
}

impl Latency {
    /// Summarises `histogram`.
    pub fn of(histogram: &Histogram<u64>) -> Result<Self, String> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .map_err(|error| format!("latency histogram: {error}"))?;
        Ok(Self {
            count: histogram.len(),
            mean: histogram.mean(),
            stdev: histogram.stdev(),
            p50: histogram.value_at_quantile(0.5),
            p90: histogram.value_at_quantile(0.9),
            p99: histogram.value_at_quantile(0.99),
            p99_9: histogram.value_at_quantile(0.999),
            p99_99: histogram.value_at_quantile(0.9999),
            max: histogram.max(),
            hdr: BASE64.encode(&bytes),
        })
    }

    /// Decodes the histogram.
    pub fn histogram(&self) -> Result<Histogram<u64>, String> {
        let bytes = BASE64
            .decode(self.hdr.as_bytes())
            .map_err(|error| format!("latency histogram: {error}"))?;
        Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| format!("latency histogram: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_survives_json_and_a_cut_one_is_refused() -> Result<(), String> {
        let mut histogram = Histogram::new(3).map_err(|error| error.to_string())?;
        for value in [1, 20, 300, 4_000, 1_000_000] {
            histogram.record(value).map_err(|error| error.to_string())?;
        }
        let text = serde_json::to_string(&Latency::of(&histogram)?).map_err(|e| e.to_string())?;
        let mut latency: Latency = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        assert_eq!(latency.count, 5);
        assert_eq!(latency.p50, 300);
        assert_eq!(latency.histogram()?, histogram);
        latency.hdr.truncate(8);
        assert!(latency.histogram().is_err());
        Ok(())
    }
}
