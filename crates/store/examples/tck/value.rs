//! The compatibility kit's own notation for values.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use isolith_graph::{Datum, NodeDatum, PathDatum, RelationshipDatum};

/// Reads a value.
pub(super) fn parse(text: &str) -> Result<Datum> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value()?;
    reader.blank();
    ensure!(reader.at == text.len(), "{text} is more than a value");
    Ok(value)
}

/// A value in one form, whatever its numbers in the graph; lists sorted if their order does
/// not matter.
pub(super) fn show(value: &Datum, sorted: bool) -> String {
    match value {
        Datum::Null => "null".to_owned(),
        Datum::Boolean(value) => value.to_string(),
        Datum::Integer(value) => value.to_string(),
        Datum::Float(value) => format!("{value:?}"),
        Datum::Text(text) => format!("{text:?}"),
        // The kit writes temporal values as texts.
        Datum::Temporal(it) => format!("{:?}", it.to_string()),
        Datum::List(list) => {
            let mut items: Vec<String> = list.iter().map(|item| show(item, sorted)).collect();
            if sorted {
                items.sort();
            }
            format!("[{}]", items.join(", "))
        }
        Datum::Map(map) => show_map(map, sorted),
        Datum::Node(node) => show_node(node),
        Datum::Relationship(relationship) => show_relationship(relationship),
        Datum::Path(path) => {
            let mut text = format!("<{}", show_node(&path.nodes[0]));
            for (at, relationship) in path.relationships.iter().enumerate() {
                let shown = show_relationship(relationship);
                text += &if relationship.start == path.nodes[at].id {
                    format!("-{shown}->")
                } else {
                    format!("<-{shown}-")
                };
                text += &show_node(&path.nodes[at + 1]);
            }
            text + ">"
        }
    }
}

fn show_map(map: &BTreeMap<String, Datum>, sorted: bool) -> String {
    let entries = map.iter().map(|(key, value)| format!("{key}: {}", show(value, sorted)));
    format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
}

fn show_node(node: &NodeDatum) -> String {
    let labels: String = node.labels.iter().map(|label| format!(":{label}")).collect();
    format!("({labels} {})", show_map(&node.properties, false))
}

fn show_relationship(relationship: &RelationshipDatum) -> String {
    format!("[:{} {}]", relationship.kind, show_map(&relationship.properties, false))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn blank(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, symbol: &str) -> bool {
        self.blank();
        let is = self.rest().starts_with(symbol);
        if is {
            self.at += symbol.len();
        }
        is
    }

    fn expect(&mut self, symbol: &str) -> Result<()> {
        ensure!(self.eat(symbol), "no {symbol} in {} at {}", self.text, self.at);
        Ok(())
    }

    fn word(&mut self) -> String {
        self.blank();
        let end = self
            .rest()
            .find(|letter: char| !(letter.is_alphanumeric() || "_.+-".contains(letter)))
            .unwrap_or(self.rest().len());
        let word = self.rest()[..end].to_owned();
        self.at += end;
        word
    }

    fn name(&mut self) -> String {
        self.blank();
        let end = self
            .rest()
            .find(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
            .unwrap_or(self.rest().len());
        let word = self.rest()[..end].to_owned();
        self.at += end;
        word
    }

    fn value(&mut self) -> Result<Datum> {
        self.blank();
        match self.rest().chars().next() {
            Some('\'') => self.string(),
            Some('(') => Ok(Datum::Node(Box::new(self.node(0)?))),
            Some('<') => self.path(),
            Some('{') => Ok(Datum::Map(self.map()?)),
            Some('[') => {
                if self.rest()[1..].trim_start().starts_with(':') {
                    return Ok(Datum::Relationship(Box::new(self.relationship(0, 1)?)));
                }
                self.expect("[")?;
                let mut items = Vec::new();
                while !self.eat("]") {
                    items.push(self.value()?);
                    self.eat(",");
                }
                Ok(Datum::List(items))
            }
            _ => self.plain(),
        }
    }

    fn plain(&mut self) -> Result<Datum> {
        let word = self.word();
        Ok(match word.as_str() {
            "null" => Datum::Null,
            "true" => Datum::Boolean(true),
            "false" => Datum::Boolean(false),
            "NaN" => Datum::Float(f64::NAN),
            "Inf" | "Infinity" => Datum::Float(f64::INFINITY),
            "-Inf" | "-Infinity" => Datum::Float(f64::NEG_INFINITY),
            _ => match (word.parse::<i64>(), word.parse::<f64>()) {
                (Ok(number), _) => Datum::Integer(number),
                (_, Ok(number)) => Datum::Float(number),
                _ => bail!("{word:?} in {} is not a value", self.text),
            },
        })
    }

    fn string(&mut self) -> Result<Datum> {
        self.expect("'")?;
        let mut text = String::new();
        let mut letters = self.rest().char_indices();
        let mut end = None;
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\'' => {
                    end = Some(at + 1);
                    break;
                }
                '\\' => match letters.next() {
                    Some((_, '\'')) => text.push('\''),
                    Some((_, '\\')) => text.push('\\'),
                    Some((_, other)) => {
                        text.push('\\');
                        text.push(other);
                    }
                    None => {}
                },
                _ => text.push(letter),
            }
        }
        match end {
            Some(end) => self.at += end,
            None => bail!("a string does not end in {}", self.text),
        }
        Ok(Datum::Text(text))
    }

    fn map(&mut self) -> Result<BTreeMap<String, Datum>> {
        self.expect("{")?;
        let mut map = BTreeMap::new();
        while !self.eat("}") {
            let key = self.name();
            self.expect(":")?;
            map.insert(key, self.value()?);
            self.eat(",");
        }
        Ok(map)
    }

    fn optional_map(&mut self) -> Result<BTreeMap<String, Datum>> {
        self.blank();
        if self.rest().starts_with('{') { self.map() } else { Ok(BTreeMap::new()) }
    }

    fn node(&mut self, id: i64) -> Result<NodeDatum> {
        self.expect("(")?;
        let mut labels = Vec::new();
        while self.eat(":") {
            labels.push(self.name());
        }
        labels.sort();
        let properties = self.optional_map()?;
        self.expect(")")?;
        Ok(NodeDatum { id, labels, properties })
    }

    fn relationship(&mut self, start: i64, end: i64) -> Result<RelationshipDatum> {
        self.expect("[")?;
        self.expect(":")?;
        let kind = self.name();
        let properties = self.optional_map()?;
        self.expect("]")?;
        Ok(RelationshipDatum { id: 0, kind, start, end, properties })
    }

    fn path(&mut self) -> Result<Datum> {
        self.expect("<")?;
        let mut nodes = vec![self.node(0)?];
        let mut relationships = Vec::new();
        while !self.eat(">") {
            let (from, to) = (nodes.len() as i64 - 1, nodes.len() as i64);
            if self.eat("<-") {
                relationships.push(self.relationship(to, from)?);
                self.expect("-")?;
            } else {
                self.expect("-")?;
                relationships.push(self.relationship(from, to)?);
                self.expect("->")?;
            }
            nodes.push(self.node(to)?);
        }
        Ok(Datum::Path(Box::new(PathDatum { nodes, relationships })))
    }
}
