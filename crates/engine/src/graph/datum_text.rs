//! Formats graph values for people.

use std::collections::BTreeMap;

use isolith_graph::{Datum, NodeDatum};

/// Formats a value; nodes and relationships as in a query.
#[must_use]
pub fn datum_text(datum: &Datum) -> String {
    match datum {
        Datum::Node(node) => node_text(node),
        Datum::Relationship(edge) => format!("[:{}{}]", edge.kind, map_text(&edge.properties)),
        Datum::Path(path) => {
            let mut text = path.nodes.first().map(node_text).unwrap_or_default();
            for (at, edge) in path.relationships.iter().enumerate() {
                let (from, to) = (&path.nodes[at], &path.nodes[at + 1]);
                let link = format!("[:{}]", edge.kind);
                let forward = edge.start == from.id;
                text += &if forward { format!("-{link}->") } else { format!("<-{link}-") };
                text += &node_text(to);
            }
            text
        }
        Datum::List(list) => {
            format!("[{}]", list.iter().map(datum_text).collect::<Vec<_>>().join(", "))
        }
        Datum::Map(map) => map_text(map).trim_start().to_owned(),
        Datum::Text(text) => text.clone(),
        Datum::Temporal(it) => it.to_string(),
        // JSON has no number for these.
        Datum::Float(float) if !float.is_finite() => datum_number(*float),
        other => other.to_json().to_string(),
    }
}

fn datum_number(float: f64) -> String {
    match float {
        float if float.is_nan() => "NaN".to_owned(),
        float if float > 0.0 => "Infinity".to_owned(),
        _ => "-Infinity".to_owned(),
    }
}

fn node_text(node: &NodeDatum) -> String {
    let labels: String = node.labels.iter().map(|label| format!(":{label}")).collect();
    format!("({labels}{})", map_text(&node.properties))
}

/// With a leading space; empty for an empty map.
fn map_text(map: &BTreeMap<String, Datum>) -> String {
    if map.is_empty() {
        return String::new();
    }
    let entry = |(key, value): (&String, &Datum)| match value {
        Datum::Text(text) => format!("{key}: {text:?}"),
        other => format!("{key}: {}", datum_text(other)),
    };
    format!(" {{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
}
