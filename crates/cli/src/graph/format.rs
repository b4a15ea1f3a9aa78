//! Rows of the graph in the formats of people and programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::ValueEnum;
use isolith_engine::{Datum, NodeDatum, RelationshipDatum, datum_text};

use crate::table::table;
use crate::terminal::one_line;

/// How rows are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns for people
    Table,
    /// One JSON document
    Json,
    /// A JSON object a line
    Jsonl,
    /// Comma-separated values
    Csv,
    /// Nodes and relationships for Graphviz
    Dot,
    /// Nodes and relationships as GraphML
    Graphml,
}

impl Format {
    /// The rows as text; JSON is the caller's.
    pub(super) fn text(self, columns: &[String], rows: &[Vec<Datum>]) -> String {
        match self {
            Format::Table | Format::Json => as_table(columns, rows),
            Format::Jsonl => as_lines(columns, rows),
            Format::Csv => as_csv(columns, rows),
            Format::Dot => Drawn::of(rows).dot(),
            Format::Graphml => Drawn::of(rows).graphml(),
        }
    }
}

fn as_table(columns: &[String], rows: &[Vec<Datum>]) -> String {
    if columns.is_empty() {
        return String::new();
    }
    let is_number = |column: usize| {
        let mut cells = rows.iter().map(|row| &row[column]).filter(|cell| **cell != Datum::Null);
        !rows.is_empty() && cells.all(|cell| matches!(cell, Datum::Integer(_) | Datum::Float(_)))
    };
    let headings: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(at, name)| if is_number(at) { format!(">{name}") } else { name.clone() })
        .collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| one_line(&datum_text(cell))).collect())
        .collect();
    table(&headings, &cells)
}

fn as_lines(columns: &[String], rows: &[Vec<Datum>]) -> String {
    let mut text = String::new();
    for row in rows {
        let cells = columns.iter().cloned().zip(row.iter().map(Datum::to_json));
        text += &serde_json::Value::Object(cells.collect()).to_string();
        text.push('\n');
    }
    text
}

fn as_csv(columns: &[String], rows: &[Vec<Datum>]) -> String {
    let quoted = |cell: &str| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    };
    let line = |cells: Vec<String>| {
        cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\r\n"
    };
    let mut text = line(columns.to_vec());
    for row in rows {
        text += &line(row.iter().map(plain).collect());
    }
    text
}

/// A value as a program reads it: text as it is, nothing for null, JSON for the rest.
fn plain(datum: &Datum) -> String {
    match datum {
        Datum::Null => String::new(),
        Datum::Text(text) => text.clone(),
        other => other.to_json().to_string(),
    }
}

/// The nodes and relationships that occur in an answer, each once.
#[derive(Default)]
struct Drawn<'a> {
    nodes: BTreeMap<i64, Option<&'a NodeDatum>>,
    edges: BTreeMap<i64, &'a RelationshipDatum>,
}

impl<'a> Drawn<'a> {
    fn of(rows: &'a [Vec<Datum>]) -> Self {
        let mut drawn = Self::default();
        rows.iter().flatten().for_each(|datum| drawn.add(datum));
        drawn
    }

    fn add(&mut self, datum: &'a Datum) {
        match datum {
            Datum::Node(node) => self.add_node(node),
            Datum::Relationship(edge) => self.add_edge(edge),
            Datum::Path(path) => {
                path.nodes.iter().for_each(|node| self.add_node(node));
                path.relationships.iter().for_each(|edge| self.add_edge(edge));
            }
            Datum::List(list) => list.iter().for_each(|datum| self.add(datum)),
            Datum::Map(map) => map.values().for_each(|datum| self.add(datum)),
            _ => {}
        }
    }

    fn add_node(&mut self, node: &'a NodeDatum) {
        self.nodes.insert(node.id, Some(node));
    }

    /// Its ends are drawn too, if only as numbers.
    fn add_edge(&mut self, edge: &'a RelationshipDatum) {
        self.edges.insert(edge.id, edge);
        for end in [edge.start, edge.end] {
            self.nodes.entry(end).or_default();
        }
    }

    fn dot(&self) -> String {
        let mut text = String::from("digraph {\n");
        for (id, node) in &self.nodes {
            let label = node.map_or_else(|| id.to_string(), caption);
            let _ = writeln!(text, "  {} [label={}];", dot_id(*id), dot_text(&label));
        }
        for edge in self.edges.values() {
            let (start, end, kind) = (dot_id(edge.start), dot_id(edge.end), dot_text(&edge.kind));
            let _ = writeln!(text, "  {start} -> {end} [label={kind}];");
        }
        text + "}\n"
    }

    fn graphml(&self) -> String {
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

/// What is written on a node: its name if it has one.
fn caption(node: &NodeDatum) -> String {
    let name = ["name", "title", "path", "id"].iter().find_map(|key| node.properties.get(*key));
    match (name, node.labels.first()) {
        (Some(name), _) => plain(name),
        (None, Some(label)) => format!(":{label}"),
        (None, None) => node.id.to_string(),
    }
}

fn dot_id(id: i64) -> String {
    // Graphviz takes a minus for a part of the syntax.
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

    fn answer() -> (Vec<String>, Vec<Vec<Datum>>) {
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
            Datum::Node(node(1, "Ann \"A\" <x>")),
            Datum::Relationship(edge),
            Datum::Integer(7),
        ];
        (columns, vec![row])
    }

    #[test]
    fn an_answer_is_shown_in_every_format() {
        let (columns, rows) = answer();
        let shown = |format: Format| format.text(&columns, &rows);
        assert_eq!(
            shown(Format::Table),
            "a                                  r                       n\n\
             (:Person {name: \"Ann \\\"A\\\" <x>\"})  [:KNOWS {since: 1999}]  7\n"
        );
        assert_eq!(
            shown(Format::Csv),
            "a,r,n\r\n\"{\"\"id\"\":1,\"\"labels\"\":[\"\"Person\"\"],\"\"properties\"\":{\"\"name\"\":\"\"Ann \\\"\"A\\\"\" <x>\"\"}}\",\
             \"{\"\"end\"\":2,\"\"id\"\":1,\"\"properties\"\":{\"\"since\"\":1999},\"\"start\"\":1,\"\"type\"\":\"\"KNOWS\"\"}\",7\r\n"
        );
        let line: serde_json::Value = serde_json::from_str(shown(Format::Jsonl).trim()).unwrap();
        assert_eq!(line["n"], 7);
        assert_eq!(
            shown(Format::Dot),
            "digraph {\n  \"1\" [label=\"Ann \\\"A\\\" <x>\"];\n  \"2\" [label=\"2\"];\n  \"1\" -> \"2\" [label=\"KNOWS\"];\n}\n"
        );
        let graphml = shown(Format::Graphml);
        assert!(graphml.contains("<data key=\"node.name\">Ann &quot;A&quot; &lt;x&gt;</data>"));
        assert!(graphml.contains("<edge id=\"e1\" source=\"n1\" target=\"n2\">"), "{graphml}");
    }
}
