//! Queries about the whole code: import cycles, hotspots, and counts of nodes and edges.

use std::collections::{BTreeMap, HashMap};

use isolith_graph::Datum;
use isolith_types::Failure;
use serde::Serialize;

use super::cycles::{Links, shortest_cycle, strongly_connected};
use super::row::{Symbol, certainties};
use super::walk::Listed;
use crate::open::Engine;

/// Edges whose target counts as used.
pub(super) const USES: &str = "CALLS|REFERENCES|INHERITS|IMPLEMENTS|IMPORTS|TESTS";

/// Files that import each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportCycle {
    /// All files that import each other directly or indirectly, by path.
    pub files: Vec<String>,
    /// A shortest cycle among them.
    pub ring: Vec<FileImport>,
}

/// A file that imports another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileImport {
    /// The importing file.
    pub from: String,
    /// The imported file.
    pub to: String,
    /// The line of the import.
    pub line: Option<u32>,
}

/// A symbol with many edges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hotspot {
    /// The symbol.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// The number of its edges.
    pub count: u64,
}

/// Which edges of a symbol are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HotBy {
    /// Calls of it.
    Callers,
    /// Calls that it makes.
    Callees,
    /// All edges.
    Links,
}

/// The size of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GraphSize {
    /// The number of nodes.
    pub nodes: u64,
    /// The number of edges.
    pub edges: u64,
    /// Nodes by label.
    pub labels: Vec<LabelCount>,
    /// Edges by type and certainty.
    pub types: Vec<EdgeCount>,
}

/// Nodes with the same label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LabelCount {
    /// The label; none for nodes without one.
    pub label: Option<String>,
    /// How many.
    pub count: u64,
}

/// Edges of the same type and certainty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EdgeCount {
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The certainty; none for edges without one.
    pub certainty: Option<String>,
    /// How many.
    pub count: u64,
}

impl Engine {
    /// Import cycles, the smallest first. Imports of types alone do not count: they do not
    /// exist when the program runs.
    ///
    /// # Errors
    /// `not_found` if no code is indexed, or an error of the store.
    pub async fn import_cycles(
        &self,
        candidates: bool,
        limit: usize,
    ) -> Result<Listed<ImportCycle>, Failure> {
        self.require_code().await?;
        let (restricted, roots) = self.in_roots_here("a:File").await?;
        let query = format!(
            "{restricted}MATCH (a:File)-[r:IMPORTS]->(b:File) \
             WHERE r.certainty IN $certainties AND r.type_only IS NULL \
             RETURN id(a), a.path, id(b), b.path, r.line"
        );
        let parameters = [("certainties", certainties(candidates)), ("roots", roots)];
        let mut imports = Imports::default();
        for mut row in self.rows(query, parameters).await? {
            let (from, from_path) = (row.number(), row.text().unwrap_or_default());
            let (to, to_path) = (row.number(), row.text().unwrap_or_default());
            imports.add((from, from_path), (to, to_path), row.line());
        }
        Ok(Listed::truncated(imports.cycles(), limit, false))
    }

    /// The symbols with the most edges.
    ///
    /// # Errors
    /// `not_found` if no code is indexed, or an error of the store.
    pub async fn hotspots(
        &self,
        by: HotBy,
        candidates: bool,
        limit: usize,
    ) -> Result<Vec<Hotspot>, Failure> {
        self.require_code().await?;
        let pattern = match by {
            HotBy::Callers => "(n)<-[r:CALLS]-()".to_owned(),
            HotBy::Callees => "(n)-[r:CALLS]->()".to_owned(),
            HotBy::Links => format!("(n)-[r:{USES}]-()"),
        };
        let (restricted, roots) = self.in_roots_here("n").await?;
        let query = format!(
            "{restricted}MATCH {pattern} WHERE r.certainty IN $certainties AND n.qualified_name IS NOT NULL \
             WITH n, count(r) AS links ORDER BY links DESC, n.id LIMIT $most RETURN n, links"
        );
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let most = Datum::Integer(most);
        let parameters =
            [("certainties", certainties(candidates)), ("most", most), ("roots", roots)];
        let rows = self.rows(query, parameters).await?;
        let hotspot = |mut row: super::row::RowCells| {
            let symbol = row.symbol()?;
            Some(Hotspot { symbol, count: u64::try_from(row.number()).unwrap_or(0) })
        };
        Ok(rows.into_iter().filter_map(hotspot).collect())
    }

    /// Number of calls into each file from other files, by path.
    pub(crate) async fn calls_into_files(&self) -> Result<HashMap<String, u64>, Failure> {
        let (restricted, roots) = self.in_roots_here("n").await?;
        let query = format!(
            "{restricted}MATCH (n)<-[r:CALLS]-(m) \
             WHERE r.certainty IN $certainties AND n.path <> m.path \
             RETURN n.path, count(r)"
        );
        let parameters = [("certainties", certainties(false)), ("roots", roots)];
        let rows = self.rows(query, parameters).await?.into_iter();
        let counted = |mut row: super::row::RowCells| {
            Some((row.text()?, u64::try_from(row.number()).unwrap_or(0)))
        };
        Ok(rows.filter_map(counted).collect())
    }

    /// Counts nodes by label and edges by type, the most frequent first.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn graph_size(&self) -> Result<GraphSize, Failure> {
        let count = |row: &mut super::row::RowCells| u64::try_from(row.number()).unwrap_or(0);
        let mut size = GraphSize { nodes: 0, edges: 0, labels: Vec::new(), types: Vec::new() };
        for mut row in self.rows("MATCH (n) RETURN count(n)", []).await? {
            size.nodes = count(&mut row);
        }
        let labels = "MATCH (n) WITH labels(n) AS labels UNWIND \
                      CASE WHEN size(labels) = 0 THEN [null] ELSE labels END AS label \
                      RETURN label, count(*) AS count ORDER BY count DESC, label";
        for mut row in self.rows(labels, []).await? {
            size.labels.push(LabelCount { label: row.text(), count: count(&mut row) });
        }
        let types = "MATCH ()-[r]->() RETURN type(r) AS type, r.certainty AS certainty, \
                     count(*) AS count ORDER BY count DESC, type, certainty";
        for mut row in self.rows(types, []).await? {
            let (kind, certainty) = (row.text().unwrap_or_default(), row.text());
            size.types.push(EdgeCount { kind, certainty, count: count(&mut row) });
        }
        size.edges = size.types.iter().map(|it| it.count).sum();
        Ok(size)
    }
}

/// Which files import which.
#[derive(Default)]
struct Imports {
    paths: BTreeMap<i64, String>,
    links: Links,
    lines: HashMap<(i64, i64), u32>,
}

impl Imports {
    fn add(&mut self, from: (i64, String), to: (i64, String), line: Option<u32>) {
        let (ends, line) = ((from.0, to.0), line.unwrap_or(u32::MAX));
        self.paths.extend([from, to]);
        self.links.entry(ends.0).or_default().insert(ends.1);
        let first = self.lines.entry(ends).or_insert(line);
        *first = line.min(*first);
    }

    fn cycles(&self) -> Vec<ImportCycle> {
        let path = |number: &i64| self.paths.get(number).cloned().unwrap_or_default();
        let mut cycles: Vec<ImportCycle> = strongly_connected(&self.links)
            .iter()
            .map(|component| {
                let mut ring = shortest_cycle(component, &self.links);
                let first = (0..ring.len()).min_by_key(|at| path(&ring[*at]));
                ring.rotate_left(first.unwrap_or(0));
                let next = ring.iter().cycle().skip(1);
                let ring = ring.iter().zip(next).map(|(from, to)| FileImport {
                    from: path(from),
                    to: path(to),
                    line: self.lines.get(&(*from, *to)).copied().filter(|line| *line < u32::MAX),
                });
                let mut files: Vec<String> = component.iter().map(path).collect();
                files.sort();
                ImportCycle { files, ring: ring.collect() }
            })
            .collect();
        cycles.sort_by(|a, b| (a.files.len(), &a.files).cmp(&(b.files.len(), &b.files)));
        cycles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_list_their_files_and_the_lines_of_a_shortest_cycle() {
        let mut imports = Imports::default();
        let file = |number: i64, path: &str| (number, path.to_owned());
        imports.add(file(1, "b.py"), file(2, "a.py"), Some(3));
        imports.add(file(2, "a.py"), file(1, "b.py"), Some(7));
        imports.add(file(2, "a.py"), file(1, "b.py"), Some(5));
        imports.add(file(2, "a.py"), file(3, "c.py"), Some(1));
        let [cycle] = imports.cycles().try_into().unwrap();
        assert_eq!(cycle.files, ["a.py", "b.py"]);
        let ring: Vec<_> =
            cycle.ring.iter().map(|it| (it.from.as_str(), it.to.as_str(), it.line)).collect();
        assert_eq!(ring, [("a.py", "b.py", Some(5)), ("b.py", "a.py", Some(3))]);
    }
}
