//! Procedures that queries can call.

use std::sync::Arc;

use crate::budget::Budget;
use crate::check::Type;
use crate::error::Result;
use crate::graph::Graph;
use crate::value::{Datum, Value};

/// A procedure: what it takes, what it returns, and how its rows are found.
#[derive(Debug)]
pub struct Procedure {
    name: String,
    inputs: Vec<(Arc<str>, Type)>,
    outputs: Vec<(Arc<str>, Type)>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Labels,
    RelationshipTypes,
    PropertyKeys,
    /// Rows with the inputs first: those with equal inputs are returned.
    Table(Vec<Vec<Datum>>),
}

/// The names of all types that a signature can have.
const TYPES: [(&str, Type); 8] = [
    ("ANY", Type::Any),
    ("BOOLEAN", Type::Boolean),
    ("INTEGER", Type::Integer),
    ("FLOAT", Type::Float),
    ("NUMBER", Type::Number),
    ("STRING", Type::Text),
    ("MAP", Type::Map),
    ("NODE", Type::Node),
];

impl Procedure {
    /// A procedure that looks up its arguments in a table, whose rows have the inputs first and
    /// then the outputs. Both come with their types, such as `STRING`; an unknown type is any.
    #[must_use]
    pub fn of_table(
        name: &str,
        inputs: &[(&str, &str)],
        outputs: &[(&str, &str)],
        rows: Vec<Vec<Datum>>,
    ) -> Self {
        let typed = |columns: &[(&str, &str)]| {
            let column = |(name, kind): &(&str, &str)| {
                let known = TYPES.iter().find(|(known, _)| known == kind);
                ((*name).into(), known.map_or(Type::Any, |(_, kind)| kind.clone()))
            };
            columns.iter().map(column).collect()
        };
        let (inputs, outputs) = (typed(inputs), typed(outputs));
        Procedure { name: name.to_owned(), inputs, outputs, body: Body::Table(rows) }
    }

    fn of_names(name: &str, output: &str, body: Body) -> Self {
        let outputs = vec![(output.into(), Type::Text)];
        Procedure { name: name.to_owned(), inputs: Vec::new(), outputs, body }
    }

    /// Finds one of the procedures that every graph has.
    pub(crate) fn built_in(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "db.labels" => Procedure::of_names("db.labels", "label", Body::Labels),
            "db.relationshiptypes" => Procedure::of_names(
                "db.relationshipTypes",
                "relationshipType",
                Body::RelationshipTypes,
            ),
            "db.propertykeys" => {
                Procedure::of_names("db.propertyKeys", "propertyKey", Body::PropertyKeys)
            }
            _ => return None,
        })
    }

    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    pub(crate) fn inputs(&self) -> &[(Arc<str>, Type)] {
        &self.inputs
    }

    pub(crate) fn outputs(&self) -> &[(Arc<str>, Type)] {
        &self.outputs
    }

    /// The rows for some arguments: the values of all outputs.
    pub(crate) fn rows(
        &self,
        graph: &dyn Graph,
        budget: &Budget<'_>,
        arguments: &[Value],
    ) -> Result<Vec<Vec<Value>>> {
        let names = |names: Vec<Arc<str>>| -> Result<Vec<Vec<Value>>> {
            budget.list(names.len())?;
            Ok(names.into_iter().map(|name| vec![Value::text(name)]).collect())
        };
        match &self.body {
            Body::Labels => names(graph.labels()?),
            Body::RelationshipTypes => names(graph.relationship_types()?),
            Body::PropertyKeys => names(graph.property_keys()?),
            Body::Table(rows) => {
                let mut found = Vec::new();
                for row in rows {
                    budget.step()?;
                    let values: Vec<Value> = row.iter().map(Datum::to_value).collect();
                    let (inputs, outputs) = values.split_at(arguments.len().min(values.len()));
                    // As in grouping, where null equals null.
                    if inputs == arguments {
                        found.push(outputs.to_vec());
                    }
                }
                Ok(found)
            }
        }
    }
}
