//! The text formats. The library writes OpenMetrics; the older format of Prometheus differs in the
//! names of counters.

/// A format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// The text format of Prometheus, which every tool reads.
    Prometheus,
    OpenMetrics,
}

impl Format {
    /// The format for an `Accept` header: OpenMetrics for those that ask for it.
    pub(crate) fn accepted(accept: &str) -> Self {
        match accept.contains("application/openmetrics-text") {
            true => Self::OpenMetrics,
            false => Self::Prometheus,
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Converts a text in OpenMetrics.
    pub(crate) fn convert(self, text: String) -> String {
        match self {
            Self::Prometheus => to_prometheus(&text),
            Self::OpenMetrics => text,
        }
    }
}

/// In Prometheus's format, the comments of a counter name its samples, which end with `_total`.
fn to_prometheus(text: &str) -> String {
    let mut converted = String::with_capacity(text.len() + 1024);
    let mut add = |line: &str| {
        converted.push_str(line);
        converted.push('\n');
    };
    let mut help = None;
    for line in text.lines() {
        if line.starts_with("# HELP ") {
            // The type is on the next line.
            help = Some(line);
            continue;
        }
        let counter =
            line.strip_prefix("# TYPE ").and_then(|family| family.strip_suffix(" counter"));
        let described = help.take().map(|help| match counter {
            Some(name) => help.replacen(name, &format!("{name}_total"), 1),
            None => help.to_owned(),
        });
        if let Some(described) = described {
            add(&described);
        }
        match counter {
            Some(name) => add(&format!("# TYPE {name}_total counter")),
            None if line == "# EOF" => {}
            None => add(line),
        }
    }
    converted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_negotiated() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2";
        assert_eq!(Format::accepted(prometheus), Format::OpenMetrics);
        assert_eq!(Format::accepted("*/*"), Format::Prometheus);
        assert_eq!(Format::accepted(""), Format::Prometheus);
    }

    #[test]
    fn counters_are_named_as_their_samples_in_the_older_format() {
        let open = "# HELP a_jobs Jobs.\n# TYPE a_jobs counter\na_jobs_total{role=\"x\"} 1\n\
                    # HELP a_size Size.\n# TYPE a_size gauge\na_size 2\n# EOF\n";
        let old = "# HELP a_jobs_total Jobs.\n# TYPE a_jobs_total counter\n\
                   a_jobs_total{role=\"x\"} 1\n\
                   # HELP a_size Size.\n# TYPE a_size gauge\na_size 2\n";
        assert_eq!(Format::Prometheus.convert(open.to_owned()), old);
        assert_eq!(Format::OpenMetrics.convert(open.to_owned()), open);
    }
}
