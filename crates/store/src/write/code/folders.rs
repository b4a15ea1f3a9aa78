//! The surroundings of files in the graph: projects, folders and authors. They exist as long as
//! something refers to them.

use isolith_graph::{Direction, Graph, Value};
use isolith_types::Failure;

use super::graph::{AUTHORED, CONTAINS, RootFile};
use crate::graph::{SHARED, TruthGraph};

/// Puts a file into its folder, creating missing folders.
pub(super) fn contain(
    graph: &TruthGraph<'_>,
    place: RootFile<'_>,
    file: i64,
) -> Result<(), Failure> {
    let path = place.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let folder = folder(graph, place.root, path)?;
    graph.add_owned_edge(place.owner(), CONTAINS, (folder, file), &[])
}

/// The node of a file's folder.
pub(super) fn of_file(graph: &TruthGraph<'_>, place: RootFile<'_>) -> Result<Option<i64>, Failure> {
    let path = place.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    graph.owned(SHARED, &name_of(place.root, path))
}

/// Removes a folder if it is empty, and then its parents if they are.
pub(super) fn remove_if_empty(graph: &TruthGraph<'_>, mut folder: i64) -> Result<(), Failure> {
    let Some(contains) = graph.type_id(CONTAINS)? else { return Ok(()) };
    while graph.degree(folder, Direction::Out, &[contains])? == 0 {
        let mut around = Vec::new();
        graph.edges(folder, Direction::In, &[contains], &mut around)?;
        graph.remove_owned(SHARED, folder)?;
        match around.first() {
            Some(hop) => folder = hop.node,
            None => break,
        }
    }
    Ok(())
}

/// Sets the only author who changed a file last.
pub(super) fn authored(
    graph: &TruthGraph<'_>,
    place: RootFile<'_>,
    file: i64,
    author: &str,
) -> Result<(), Failure> {
    let mut before = Vec::new();
    if let Some(kind) = graph.type_id(AUTHORED)? {
        graph.edges(file, Direction::In, &[kind], &mut before)?;
        graph.remove_edges_of(place.owner(), |kind| kind == AUTHORED)?;
    }
    let name = format!("person:{author}");
    let person = graph.put_owned(SHARED, &name, "Person", &[("name", Value::text(author))])?;
    graph.add_owned_edge(place.owner(), AUTHORED, (person, file), &[])?;
    for hop in before {
        if graph.degree(hop.node, Direction::Both, &[])? == 0 {
            graph.remove_owned(SHARED, hop.node)?;
        }
    }
    Ok(())
}

fn folder(graph: &TruthGraph<'_>, root: u64, path: &str) -> Result<i64, Failure> {
    let name = name_of(root, path);
    if let Some(folder) = graph.owned(SHARED, &name)? {
        return Ok(folder);
    }
    if path.is_empty() {
        let number = Value::Integer(i64::try_from(root).unwrap_or(i64::MAX));
        let project = [("name", Value::text(graph.project_name(root)?)), ("root", number)];
        return graph.put_owned(SHARED, &name, "Project", &project);
    }
    let (around, own) = path.rsplit_once('/').unwrap_or(("", path));
    let around = self::folder(graph, root, around)?;
    let properties = [("name", Value::text(own)), ("path", Value::text(path))];
    let made = graph.put_owned(SHARED, &name, "Directory", &properties)?;
    graph.add_owned_edge(SHARED, CONTAINS, (around, made), &[])?;
    Ok(made)
}

fn name_of(root: u64, path: &str) -> String {
    format!("folder:{root}:{path}")
}
