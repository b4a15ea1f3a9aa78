//! The edges that an exact index implies.
//!
//! SCIP lists occurrences of symbols, without their purpose. Edges are derived as follows:
//!
//! - **CALLS**: an occurrence that is not a definition and is followed by `(`; type arguments, `?.`
//!   and `!` in between are skipped. The target is the definition of the symbol; a constructor
//!   counts as its class. Calls of parameters, and of local variables that are not functions, are
//!   not edges.
//! - **IMPORTS**: an occurrence inside an import statement, from the file to the symbol, or to the
//!   file if the symbol is a module. Statements are found by their first word and their brackets.
//! - **INHERITS**: the relationships between classes in the index, and, because it does not list
//!   all of them, the types in the head of a class: in Python within its parentheses, otherwise
//!   after `extends` and `implements`, but not within further brackets.
//!
//! Only definitions in the repository count. Several definitions of a symbol (overloads, both
//! branches of a condition) count as one.
//!
//! Where the index does not know a name (because its package is not installed, or its value has no
//! type), it cannot tell whether an edge is wrong. Such edges of ours are counted as unjudged.

use std::collections::{BTreeSet, HashMap};

use super::class_head;
use super::scip::{Document, Index, Occurrence};

/// The location of a definition: file and line from 1, or 0 for the whole file.
pub(super) type Location = (String, u32);

/// Edges from occurrences to definitions.
#[derive(Default)]
pub(super) struct GroundTruth {
    /// From the line of the call to the callee.
    pub(super) calls: BTreeSet<(Location, Location)>,
    /// From the importing file to the imported symbol or file.
    pub(super) imports: BTreeSet<(Location, Location)>,
    /// From the class to its base class.
    pub(super) bases: BTreeSet<(Location, Location)>,
    /// The first definition of a symbol, by each of its definitions.
    first: HashMap<Location, Location>,
    /// The names in each line that the index resolves.
    known: HashMap<Location, Vec<String>>,
    /// The first line of the import statement that contains a line, from 1.
    statements: HashMap<Location, u32>,
    /// The import statements with names that the index resolves, by their first lines.
    known_imports: BTreeSet<Location>,
    /// The files in the index.
    pub(super) files: BTreeSet<String>,
}

impl GroundTruth {
    /// The first definition of the symbol that is defined at a location.
    pub(super) fn first(&self, location: &Location) -> Location {
        self.first.get(location).unwrap_or(location).clone()
    }

    /// Whether the index resolves one of these names in a line.
    pub(super) fn knows(&self, line: &Location, names: &[&str]) -> bool {
        let known = self.known.get(line).map(Vec::as_slice).unwrap_or_default();
        known.iter().any(|name| names.contains(&name.as_str()))
    }

    /// Whether the index resolves a name in the import statement that contains a line.
    pub(super) fn knows_import(&self, line: &Location) -> bool {
        let first = self.statements.get(line).copied().unwrap_or_default();
        self.known_imports.contains(&(line.0.clone(), first))
    }
}

/// Derives the edges of an index. `text` returns the lines of a file, `is_definition` whether a
/// local symbol that is defined at a location is more than a variable.
pub(super) fn ground_truth(
    index: &Index,
    text: &dyn Fn(&str) -> Vec<String>,
    is_definition: &dyn Fn(&Location) -> bool,
) -> GroundTruth {
    let mut truth = GroundTruth::default();
    let mut symbols: HashMap<String, Location> = HashMap::new();
    for document in &index.documents {
        truth.files.insert(document.path.clone());
        // Another module may extend a module; that is not its definition.
        let defines = |one: &&Occurrence| one.defines && (!is_module(&one.symbol) || one.end == 0);
        for one in document.occurrences.iter().filter(defines) {
            let location = match is_module(&one.symbol) {
                true => (document.path.clone(), 0),
                false => (document.path.clone(), one.line as u32 + 1),
            };
            let first = symbols.entry(key(document, &one.symbol)).or_insert(location.clone());
            truth.first.insert(location, first.clone());
        }
    }
    for document in &index.documents {
        let lines = text(&document.path);
        let imports = import_lines(&document.path, &lines);
        for one in document.occurrences.iter().filter(|one| !one.defines) {
            let here = (document.path.clone(), one.line as u32 + 1);
            let target = target(&symbols, document, one);
            let statement = imports.get(one.line).copied().unwrap_or(0);
            if target.is_some() || !one.symbol.starts_with("local ") {
                truth.known.entry(here.clone()).or_default().push(name(&lines, one));
                truth.known_imports.insert((document.path.clone(), statement));
            }
            truth.statements.insert(here.clone(), statement);
            let Some(target) = target else { continue };
            let file = (document.path.clone(), 0);
            if statement > 0 {
                if target.0 != document.path {
                    truth.imports.insert((file, target));
                }
            } else if is_call(&lines, one)
                && !is_module(&one.symbol)
                && (!one.symbol.starts_with("local ") || is_definition(&target))
            {
                truth.calls.insert((here, target));
            }
        }
        for class in document.occurrences.iter().filter(|one| one.defines) {
            let bases = class_head::bases(&document.path, &lines, class);
            let named = document
                .occurrences
                .iter()
                .filter(|one| one.symbol.ends_with('#') && bases.contains(&(one.line, one.start)));
            for base in named {
                let class = symbols.get(&key(document, &class.symbol));
                let base = symbols.get(&key(document, &base.symbol));
                if let (Some(class), Some(base)) = (class, base) {
                    truth.bases.insert((class.clone(), base.clone()));
                }
            }
        }
        for (class, base) in &document.bases {
            let is_class = class.ends_with('#') && base.ends_with('#');
            let location = |symbol: &String| symbols.get(&key(document, symbol)).cloned();
            if let (true, Some(class), Some(base)) = (is_class, location(class), location(base)) {
                truth.bases.insert((class, base));
            }
        }
    }
    truth
}

/// A unique key for a symbol; local symbols are numbered per file.
fn key(document: &Document, symbol: &str) -> String {
    match symbol.starts_with("local ") {
        true => format!("{} {symbol}", document.path),
        false => symbol.to_owned(),
    }
}

/// The definition of the symbol of an occurrence, unless it is a parameter.
fn target(
    symbols: &HashMap<String, Location>,
    document: &Document,
    one: &Occurrence,
) -> Option<Location> {
    let symbol = one.symbol.as_str();
    if symbol.ends_with(')') || symbol.ends_with(']') {
        return None;
    }
    let class = symbol.strip_suffix("`<constructor>`().");
    let class =
        class.or_else(|| symbol.strip_suffix("__init__().").filter(|_| one.end - one.start != 8));
    if let Some(location) = class.and_then(|class| symbols.get(class)) {
        return Some(location.clone());
    }
    if let Some(location) = symbols.get(&key(document, symbol)) {
        return Some(location.clone());
    }
    // The Python indexer omits the package of modules that are imported relatively.
    let module = symbol.strip_suffix("/__init__:")?.rsplit(' ').next()?.trim_matches('`');
    let folder = document.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let steps = module.replace('.', "/");
    let named = |location: &&Location| {
        let stem = location.0.strip_suffix(".py").unwrap_or(&location.0);
        let stem = stem.strip_suffix("/__init__").unwrap_or(stem);
        let own = stem.strip_suffix(&steps).and_then(|root| root.strip_suffix('/'));
        location.1 == 0
            && own.is_some_and(|root| folder == root || folder.starts_with(&format!("{root}/")))
    };
    symbols.values().filter(named).max_by_key(|location| location.0.len()).cloned()
}

/// Whether the symbol is a file.
fn is_module(symbol: &str) -> bool {
    symbol.ends_with("/__init__:") || symbol.ends_with("`/")
}

fn name(lines: &[String], one: &Occurrence) -> String {
    let line = lines.get(one.line).map(String::as_str).unwrap_or_default();
    line.chars().skip(one.start).take(one.end - one.start).collect()
}

/// Whether arguments follow.
fn is_call(lines: &[String], one: &Occurrence) -> bool {
    let Some(line) = lines.get(one.line) else { return false };
    let units: Vec<char> = line.chars().collect();
    let before: String = units.get(..one.start).unwrap_or_default().iter().collect();
    // The Python indexer reports the second overload of a function as a use of the first.
    if ["def", "class", "function"].iter().any(|word| before.trim_end().ends_with(word)) {
        return false;
    }
    let mut rest = units.get(one.end..).unwrap_or_default().iter().copied().peekable();
    let mut depth = 0usize;
    while let Some(c) = rest.next() {
        match c {
            '(' if depth == 0 => return true,
            '<' => depth += 1,
            '>' if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            '!' => {}
            '?' if rest.peek() == Some(&'.') => {
                rest.next();
            }
            _ => return false,
        }
    }
    false
}

/// For each line, the first line of the import statement that contains it, or 0.
fn import_lines(path: &str, lines: &[String]) -> Vec<u32> {
    let python = path.ends_with(".py");
    let mut marks = vec![false; lines.len()];
    let mut firsts = vec![0; lines.len()];
    let mut open = false;
    for (index, line) in lines.iter().enumerate() {
        let bare = line.trim();
        let was_open = open;
        if !open {
            open = match python {
                true => bare.starts_with("import ") || bare.starts_with("from "),
                false => {
                    let exports = ["export {", "export *", "export type {"];
                    bare.starts_with("import ")
                        || (exports.iter().any(|start| bare.starts_with(start)))
                }
            };
        }
        marks[index] = open;
        firsts[index] = match (open, was_open) {
            (true, true) => firsts[index - 1],
            (true, false) => index as u32 + 1,
            (false, _) => 0,
        };
        if open {
            open = match python {
                true => {
                    (bare.contains('(') || marks_open(&marks, lines, index)) && !bare.contains(')')
                        || bare.ends_with('\\')
                }
                false => {
                    !(bare.contains(" from ")
                        || bare.starts_with("from ")
                        || bare.ends_with(';')
                        || bare.ends_with('\'')
                        || bare.ends_with('"'))
                }
            };
        }
    }
    firsts
}

/// Whether a bracket of the current import statement is still open.
fn marks_open(marks: &[bool], lines: &[String], index: usize) -> bool {
    let before = (0..index).rev().take_while(|line| marks[*line]);
    for line in before {
        if lines[line].contains(')') {
            return false;
        }
        if lines[line].contains('(') {
            return true;
        }
    }
    false
}
