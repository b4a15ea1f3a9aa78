//! Writes families of metrics with their labels.

use std::fmt;

use isolate::Spread;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeLabelSet, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;

/// A label, escaped.
pub(super) type Label = (&'static str, String);

/// A label. The library writes values as they are, so they are escaped here.
pub(super) fn label(name: &'static str, value: impl AsRef<str>) -> Label {
    let mut escaped = String::with_capacity(value.as_ref().len());
    for character in value.as_ref().chars() {
        match character {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            other => escaped.push(other),
        }
    }
    (name, escaped)
}

/// Writes one family after the other.
pub(super) struct Families<'e>(pub(super) DescriptorEncoder<'e>);

impl Families<'_> {
    /// `name` is without the suffix `_total`.
    pub(super) fn counter<const N: usize, V: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = ([Label; N], V)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in rows {
            with_labels(&mut family, &labels, |metric| {
                metric.encode_counter::<NoLabelSet, V, f64>(&value, None)
            })?;
        }
        Ok(())
    }

    pub(super) fn gauge<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = ([Label; N], f64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in rows {
            with_labels(&mut family, &labels, |metric| metric.encode_gauge(&value))?;
        }
        Ok(())
    }

    pub(super) fn histogram<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = ([Label; N], Spread)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, spread) in rows {
            let bounds = (0..Spread::BOUNDS).map(Spread::bound).chain([f64::MAX]);
            let buckets: Vec<(f64, u64)> = bounds.zip(spread.counts).collect();
            with_labels(&mut family, &labels, |metric| {
                metric.encode_histogram::<NoLabelSet>(spread.sum, spread.count, &buckets, None)
            })?;
        }
        Ok(())
    }
}

fn with_labels<const N: usize>(
    family: &mut MetricEncoder<'_>,
    labels: &[Label; N],
    encode: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result
where
    [Label; N]: EncodeLabelSet,
{
    match N {
        0 => encode(family),
        _ => encode(&mut family.encode_family(labels)?),
    }
}
