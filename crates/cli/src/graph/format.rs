//! Formats for the rows of a graph query.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::ValueEnum;
use isolith_engine::{Datum, NodeDatum, RelationshipDatum, datum_text};
use isolith_types::{Code, Failure};

use crate::terminal::one_line;

/// Output format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns
    Table,
    /// One JSON document
    Json,
    /// One JSON object per line
    Jsonl,
    /// Comma-separated values
    Csv,
    /// Nodes and relationships for Graphviz
    Dot,
    /// Nodes and relationships as GraphML
    Graphml,
}

/// Maximum size of a drawing, which is built in memory.
const LARGEST_DRAWING: usize = 16 << 20;

/// A line of comma-separated values.
pub(super) fn csv_line(cells: &[String]) -> String {
    let quoted = |cell: &String| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.clone(),
    };
    cells.iter().map(quoted).collect::<Vec<_>>().join(",") + "\r\n"
}

/// A value as a table shows it.
pub(super) fn cell_text(datum: &Datum) -> String {
    one_line(&datum_text(datum))
}

/// A value as CSV holds it: text unchanged, an empty cell for null, JSON for everything else.
pub(super) fn plain(datum: &Datum) -> String {
    match datum {
        Datum::Null => String::new(),
        Datum::Text(text) => text.clone(),
        Datum::Temporal(it) => it.to_string(),
        Datum::Float(_) => datum_text(datum),
        other => other.to_json().to_string(),
    }
}

/// The nodes and relationships that occur in an answer, each once.
#[derive(Default)]
pub(super) struct Drawn {
    nodes: BTreeMap<i64, Option<NodeDatum>>,
    edges: BTreeMap<i64, RelationshipDatum>,
    bytes: usize,
}

impl Drawn {
    pub(super) fn add(&mut self, datum: Datum) {
        match datum {
            Datum::Node(node) => self.add_node(*node),
            Datum::Relationship(edge) => self.add_edge(*edge),
            Datum::Path(path) => {
                path.nodes.into_iter().for_each(|node| self.add_node(node));
                path.relationships.into_iter().for_each(|edge| self.add_edge(edge));
            }
            Datum::List(list) => list.into_iter().for_each(|datum| self.add(datum)),
            Datum::Map(map) => map.into_values().for_each(|datum| self.add(datum)),
            _ => {}
        }
    }

    /// Fails if the drawing is too large.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.bytes <= LARGEST_DRAWING {
            return Ok(());
        }
        let message = format!("the drawing is larger than {} MiB", LARGEST_DRAWING >> 20);
        let hint = "add a LIMIT to the query, or use --format jsonl";
        Err(Failure::new(Code::TooLarge, message).with_hint(hint))
    }

    fn add_node(&mut self, node: NodeDatum) {
        let size = size_of_all(&node.properties);
        let known = self.nodes.insert(node.id, Some(node));
        self.bytes += if known.flatten().is_some() { 0 } else { size };
    }

    /// Also draws its ends, by their ids if nothing else is known of them.
    fn add_edge(&mut self, edge: RelationshipDatum) {
        for end in [edge.start, edge.end] {
            self.nodes.entry(end).or_default();
        }
        let size = size_of_all(&edge.properties);
        let known = self.edges.insert(edge.id, edge);
        self.bytes += if known.is_some() { 0 } else { size };
    }

    pub(super) fn dot(&self) -> String {
        let mut text = String::from("digraph {\n");
        for (id, node) in &self.nodes {
            let label = node.as_ref().map_or_else(|| id.to_string(), caption);
            let _ = writeln!(text, "  {} [label={}];", dot_id(*id), dot_text(&label));
        }
        for edge in self.edges.values() {
            let (start, end, kind) = (dot_id(edge.start), dot_id(edge.end), dot_text(&edge.kind));
            let _ = writeln!(text, "  {start} -> {end} [label={kind}];");
        }
        text + "}\n"
    }

    pub(super) fn graphml(&self) -> String {
        let mut text = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n  \
             <key id=\"labels\" for=\"node\" attr.name=\"labels\" attr.type=\"string\"/>\n  \
             <key id=\"type\" for=\"edge\" attr.name=\"type\" attr.type=\"string\"/>\n",
        );
        let nodes = self.nodes.values().flatten().flat_map(|node| node.properties.keys());
        let mut keys: Vec<(&str, &str)> = nodes.map(|key| ("node", key.as_str())).collect();
        let edges = self.edges.values().flat_map(|edge| edge.properties.keys());
        keys.extend(edges.map(|key| ("edge", key.as_str())));
        keys.sort_unstable();
        keys.dedup();
        for (of, key) in &keys {
            let name = xml(key);
            let _ = writeln!(
                text,
                "  <key id=\"{of}.{name}\" for=\"{of}\" attr.name=\"{name}\" attr.type=\"string\"/>"
            );
        }
        text += "  <graph edgedefault=\"directed\">\n";
        for (id, node) in &self.nodes {
            let _ = write!(text, "    <node id=\"n{id}\">");
            if let Some(node) = node {
                let _ = write!(text, "<data key=\"labels\">{}</data>", xml(&node.labels.join(";")));
                text += &xml_data("node", &node.properties);
            }
            text += "</node>\n";
        }
        for (id, edge) in &self.edges {
            let (start, end, kind) = (edge.start, edge.end, xml(&edge.kind));
            let _ = write!(
                text,
                "    <edge id=\"e{id}\" source=\"n{start}\" target=\"n{end}\"><data key=\"type\">{kind}</data>"
            );
            text += &xml_data("edge", &edge.properties);
            text += "</edge>\n";
        }
        text + "  </graph>\n</graphml>\n"
    }
}

/// The approximate size of a node or relationship with these properties.
fn size_of_all(properties: &BTreeMap<String, Datum>) -> usize {
    const EMPTY: usize = 256;
    let size = |value: &Datum| match value {
        Datum::Text(text) => text.len(),
        Datum::List(list) => list.len() * EMPTY / 4,
        _ => 0,
    };
    properties.iter().fold(EMPTY, |sum, (key, value)| sum + 2 * EMPTY / 4 + key.len() + size(value))
}

/// The label of a node: its name if it has one.
fn caption(node: &NodeDatum) -> String {
    let name = ["name", "title", "path", "id"].iter().find_map(|key| node.properties.get(*key));
    match (name, node.labels.first()) {
        (Some(name), _) => plain(name),
        (None, Some(label)) => format!(":{label}"),
        (None, None) => node.id.to_string(),
    }
}

fn dot_id(id: i64) -> String {
    // Graphviz would parse a minus sign as syntax.
    format!("\"{id}\"")
}

fn dot_text(text: &str) -> String {
    format!("\"{}\"", one_line(text).replace('\\', "\\\\").replace('"', "\\\""))
}

fn xml_data(of: &str, properties: &BTreeMap<String, Datum>) -> String {
    let data = |(key, value): (&String, &Datum)| {
        format!("<data key=\"{of}.{}\">{}</data>", xml(key), xml(&plain(value)))
    };
    properties.iter().map(data).collect()
}

fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            // XML has no way to write these.
            '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> (Vec<String>, Vec<Datum>) {
        let text = |text: &str| Datum::Text(text.to_owned());
        let node = |id, name: &str| NodeDatum {
            id,
            labels: vec!["Person".to_owned()],
            properties: BTreeMap::from([("name".to_owned(), text(name))]),
        };
        let edge = RelationshipDatum {
            id: 1,
            kind: "KNOWS".to_owned(),
            start: 1,
            end: 2,
            properties: BTreeMap::from([("since".to_owned(), Datum::Integer(1999))]),
        };
        let columns = ["a", "r", "n"].map(str::to_owned).to_vec();
        let row = vec![
            Datum::Node(Box::new(node(1, "Ann \"A\" <x>"))),
            Datum::Relationship(Box::new(edge)),
            Datum::Integer(7),
        ];
        (columns, row)
    }

    #[test]
    fn an_answer_is_shown_in_every_format() {
        let (columns, row) = answer();
        assert_eq!(cell_text(&row[0]), r#"(:Person {name: "Ann \"A\" <x>"})"#);
        let cells: Vec<String> = row.iter().map(plain).collect();
        assert_eq!(
            csv_line(&columns) + &csv_line(&cells),
            "a,r,n\r\n\"{\"\"id\"\":1,\"\"labels\"\":[\"\"Person\"\"],\"\"properties\"\":{\"\"name\"\":\"\"Ann \\\"\"A\\\"\" <x>\"\"}}\",\
             \"{\"\"end\"\":2,\"\"id\"\":1,\"\"properties\"\":{\"\"since\"\":1999},\"\"start\"\":1,\"\"type\"\":\"\"KNOWS\"\"}\",7\r\n"
        );
        let mut drawn = Drawn::default();
        row.into_iter().for_each(|datum| drawn.add(datum));
        assert!(drawn.check().is_ok());
        assert_eq!(
            drawn.dot(),
            "digraph {\n  \"1\" [label=\"Ann \\\"A\\\" <x>\"];\n  \"2\" [label=\"2\"];\n  \"1\" -> \"2\" [label=\"KNOWS\"];\n}\n"
        );
        let graphml = drawn.graphml();
        assert!(graphml.contains("<data key=\"node.name\">Ann &quot;A&quot; &lt;x&gt;</data>"));
        assert!(graphml.contains("<edge id=\"e1\" source=\"n1\" target=\"n2\">"), "{graphml}");
    }

    #[test]
    fn numbers_that_are_not_finite_are_plain() {
        for (float, text) in
            [(f64::NAN, "NaN"), (f64::INFINITY, "Infinity"), (f64::NEG_INFINITY, "-Infinity")]
        {
            assert_eq!(plain(&Datum::Float(float)), text);
            assert_eq!(cell_text(&Datum::Float(float)), text);
        }
    }

    #[test]
    fn drawings_are_bounded() {
        let node = |id| NodeDatum { id, labels: Vec::new(), properties: BTreeMap::new() };
        let mut drawn = Drawn::default();
        (0..200_000).for_each(|id| drawn.add(Datum::Node(Box::new(node(id % 100)))));
        assert!(drawn.check().is_ok(), "a few nodes, however often they come");
        (0..200_000).for_each(|id| drawn.add(Datum::Node(Box::new(node(id)))));
        assert_eq!(drawn.check().unwrap_err().code, Code::TooLarge);
    }
}
