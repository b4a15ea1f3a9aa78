//! Facts and entities as stored in the graph: a second copy of most of their columns.

use std::collections::HashMap;

use isolith_graph::Value as GraphValue;
use isolith_sql::Value;
use isolith_sql::{Connection, OptionalExtension, params};
use isolith_types::Moment;

use super::rebuild::text;
use crate::facts::number_of;
use crate::facts::validity::Validity;
use crate::graph::NodeParts;

/// An entity's node.
pub(super) struct GraphEntity {
    pub(super) name: String,
    pub(super) of_type: Option<String>,
    pub(super) aliases: Vec<String>,
}

impl GraphEntity {
    /// Reads an entity from the graph of the new truth, if it is there.
    pub(super) fn read(db: &dyn Connection, number: i64) -> isolith_sql::Result<Option<Self>> {
        let properties: Option<Vec<u8>> = db
            .prepare_cached("SELECT properties FROM node WHERE owner = ?1 AND name = ''")?
            .query_row([-number], |row| row.get(0))
            .optional()?;
        let Some(mut properties) = properties.map(|it| named(db, &it)).transpose()?.flatten()
        else {
            return Ok(None);
        };
        let of_type = one_text(&mut properties, "type");
        let aliases = all_texts(&mut properties, "aliases");
        Ok(one_text(&mut properties, "name").map(|name| Self { name, of_type, aliases }))
    }
}

/// A fact's edge.
pub(super) struct GraphFact {
    from: Option<Moment>,
    until: Option<Moment>,
    confidence: f64,
    drawer: Option<String>,
    file: Option<String>,
    agent: Option<String>,
    pub(super) recorded_at: i64,
    pub(super) superseded_by: Option<i64>,
}

impl GraphFact {
    /// A fact of which only the statement is known, with a confidence of 0.
    pub(super) fn unknown(now: i64) -> Self {
        Self {
            from: None,
            until: None,
            confidence: 0.0,
            drawer: None,
            file: None,
            agent: None,
            recorded_at: now,
            superseded_by: None,
        }
    }

    /// Reads a fact from the graph of the new truth, if it is there.
    pub(super) fn read(
        db: &dyn Connection,
        number: i64,
        subject: i64,
    ) -> isolith_sql::Result<Option<Self>> {
        let properties: Option<Option<Vec<u8>>> = db
            .prepare_cached(
                "SELECT e.properties FROM node s JOIN edge_out l ON l.src = s.id \
                 JOIN edge e ON e.id = l.edge \
                 WHERE s.owner = ?2 AND s.name = '' AND e.owner = ?1",
            )?
            .query_row(params![-number, -subject], |row| row.get(0))
            .optional()?;
        let Some(mut properties) =
            properties.flatten().map(|it| named(db, &it)).transpose()?.flatten()
        else {
            return Ok(None);
        };
        let mut moment = |name: &str| {
            let given = one_text(&mut properties, name)?;
            given.parse::<Moment>().ok()
        };
        let (from, until, recorded) =
            (moment("valid_from"), moment("valid_to"), moment("recorded_at"));
        let Some(recorded_at) = recorded.map(Moment::start) else { return Ok(None) };
        let Some(GraphValue::Float(confidence)) = properties.remove("confidence") else {
            return Ok(None);
        };
        let superseded_by = one_text(&mut properties, "superseded_by");
        let mut first = |name: &str| all_texts(&mut properties, name).into_iter().next();
        Ok(Some(Self {
            from,
            until,
            confidence,
            drawer: first("drawers"),
            file: first("files"),
            agent: first("agents"),
            recorded_at,
            superseded_by: superseded_by.and_then(|id| number_of(&id).ok()),
        }))
    }

    /// Start and end with their precision, `until`, and the confidence.
    pub(super) fn validity(&self) -> [Value; 6] {
        let (from, to) = (self.from, self.until);
        let validity = Validity::new(from, to)
            // If it ended when it started, it was true for a moment.
            .or_else(|_| Validity::new(from, from))
            .unwrap_or(Validity { from: None, to, until: to.map(Moment::start) });
        let start = |it: Option<Moment>| it.map_or(Value::Null, |it| it.start().into());
        let is_day = |it: Option<Moment>| Value::from(it.is_some_and(Moment::is_day));
        [
            start(validity.from),
            is_day(validity.from),
            start(validity.to),
            is_day(validity.to),
            validity.until.map_or(Value::Null, Value::from),
            Value::Real(if (0.0..=1.0).contains(&self.confidence) { self.confidence } else { 0.0 }),
        ]
    }

    /// Drawer, file and agent.
    pub(super) fn source(&self) -> [Value; 3] {
        [&self.drawer, &self.file, &self.agent].map(|it| it.clone().map_or(Value::Null, text))
    }
}

/// Properties by name; `None` if the bytes are malformed.
fn named(
    db: &dyn Connection,
    bytes: &[u8],
) -> isolith_sql::Result<Option<HashMap<String, GraphValue>>> {
    let Some(parts) = NodeParts::read(&[], bytes) else { return Ok(None) };
    let mut all = HashMap::new();
    for (key, value) in parts.properties {
        let name: Option<String> = db
            .prepare_cached("SELECT name FROM graph_name WHERE id = ?1")?
            .query_row([key], |row| row.get(0))
            .optional()?;
        all.extend(name.map(|name| (name, value)));
    }
    Ok(Some(all))
}

fn one_text(properties: &mut HashMap<String, GraphValue>, name: &str) -> Option<String> {
    match properties.remove(name)? {
        GraphValue::Text(text) => Some(text.to_string()),
        _ => None,
    }
}

fn all_texts(properties: &mut HashMap<String, GraphValue>, name: &str) -> Vec<String> {
    let Some(GraphValue::List(list)) = properties.remove(name) else { return Vec::new() };
    let texts = list.iter().filter_map(|it| match it {
        GraphValue::Text(text) => Some(text.to_string()),
        _ => None,
    });
    texts.collect()
}
