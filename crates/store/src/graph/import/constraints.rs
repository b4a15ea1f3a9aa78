//! Which constraints the rows of a table can violate. Checking these takes longer than the import.

use isolith_graph::{Constraint, ConstraintTarget, Rule};
use isolith_protocol::TableHolds;

use super::table::TableHeader;

/// The constraints that rows may violate, although their cells have the types of the columns.
pub(super) fn open(
    all: &[Constraint],
    holds: &TableHolds,
    header: &TableHeader,
) -> Vec<Constraint> {
    all.iter().filter(|constraint| !is_met(constraint, holds, header)).cloned().collect()
}

/// Whether all that can be written satisfies a constraint.
fn is_met(constraint: &Constraint, holds: &TableHolds, header: &TableHeader) -> bool {
    match (&constraint.target, holds) {
        (ConstraintTarget::Type(_), TableHolds::Nodes { .. } | TableHolds::NewNodes { .. })
        | (ConstraintTarget::Label(_), TableHolds::Edges { .. }) => return true,
        // Nodes that are updated may have other labels.
        (ConstraintTarget::Label(_), TableHolds::Nodes { .. }) => {}
        (ConstraintTarget::Label(name), TableHolds::NewNodes { label, .. }) => {
            if **name != **label {
                return true;
            }
        }
        (ConstraintTarget::Type(name), TableHolds::Edges { kind, .. }) => {
            if **name != **kind {
                return true;
            }
        }
    }
    match (&constraint.rule, holds) {
        (Rule::Typed(name, types), _) => header.has_types(name, types),
        (Rule::Exists(name), TableHolds::NewNodes { key, .. }) => **name == **key,
        (Rule::Unique(names), TableHolds::NewNodes { key, .. }) => {
            names.iter().any(|name| **name == **key)
        }
        (Rule::Key(names), TableHolds::NewNodes { key, .. }) => {
            names.iter().all(|name| **name == **key)
        }
        (Rule::Ends(pairs), TableHolds::Edges { from, to, .. }) => {
            pairs.iter().any(|(start, end)| **start == *from.label && **end == *to.label)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use isolith_protocol::TableEnd;

    use super::*;

    #[test]
    fn constraints_that_the_table_satisfies_need_no_check() {
        let header = TableHeader::read("id:int,name,score:float,any:json", b',').unwrap();
        let new = TableHolds::NewNodes { label: "P".to_owned(), key: "id".to_owned() };
        let merged = TableHolds::Nodes { label: "P".to_owned(), key: Some("id".to_owned()) };
        let end = || TableEnd { label: "P".to_owned(), key: "id".to_owned() };
        let edges = TableHolds::Edges { kind: "T".to_owned(), from: end(), to: end() };
        for (holds, requirement, expected) in [
            (&new, "(n:P) REQUIRE n.id IS UNIQUE", true),
            (&new, "(n:P) REQUIRE (n.name, n.id) IS UNIQUE", true),
            (&new, "(n:P) REQUIRE n.name IS UNIQUE", false),
            (&new, "(n:P) REQUIRE n.id IS NODE KEY", true),
            (&new, "(n:P) REQUIRE (n.id, n.name) IS NODE KEY", false),
            (&new, "(n:P) REQUIRE n.id IS NOT NULL", true),
            (&new, "(n:P) REQUIRE n.name IS NOT NULL", false),
            (&new, "(n:Q) REQUIRE n.name IS NOT NULL", true),
            (&new, "(n:P) REQUIRE n.score IS :: FLOAT | INTEGER", true),
            (&new, "(n:P) REQUIRE n.score IS :: INTEGER", false),
            (&new, "(n:P) REQUIRE n.any IS :: STRING", false),
            (&new, "(n:P) REQUIRE n.other IS :: STRING", true),
            (&merged, "(n:P) REQUIRE n.id IS NODE KEY", false),
            (&merged, "(n:Q) REQUIRE n.id IS :: INTEGER", true),
            (&merged, "(n:Q) REQUIRE n.id IS :: STRING", false),
            (&edges, "(n:P) REQUIRE n.id IS NODE KEY", true),
            (&edges, "()-[r:T]->() REQUIRE (:P)-[r]->(:P) OR (:Q)-[r]->(:Q)", true),
            (&edges, "()-[r:T]->() REQUIRE (:P)-[r]->(:Q)", false),
            (&edges, "()-[r:S]->() REQUIRE (:P)-[r]->(:Q)", true),
            (&edges, "()-[r:T]-() REQUIRE r.name IS :: STRING", true),
            (&edges, "()-[r:T]-() REQUIRE r.name IS NOT NULL", false),
        ] {
            let statement = format!("CREATE CONSTRAINT c FOR {requirement}");
            let constraint = Constraint::parse(&statement).unwrap();
            assert_eq!(is_met(&constraint, holds, &header), expected, "{requirement}");
        }
    }
}
