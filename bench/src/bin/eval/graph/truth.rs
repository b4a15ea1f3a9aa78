//! The edges that an exact index implies.
//!
//! SCIP says which symbol stands at which place, and nothing about why. So:
//!
//! - **CALLS**: a place where a symbol is not defined, and after which comes `(`, type
//!   arguments and `?.` or `!` between them passed over. What is called is where the symbol
//!   is defined; a constructor counts as its class. Calls of parameters and of local
//!   variables that are no functions are no edges.
//! - **IMPORTS**: a place inside an import statement, from the file to the symbol, or to the
//!   file if the symbol is a module. Statements are found by their first word and their
//!   brackets.
//! - **INHERITS**: the relationships between classes that the index lists, and, as it does
//!   not list all of them, the types that stand in the head of a class: in Python within its
//!   brackets, otherwise after `extends` and `implements`, and not within others' brackets.
//!
//! Only what is defined in the repository counts. A symbol with several definitions
//! (overloads, both branches of a condition) is one.
//!
//! Where the index does not know what a name is (it comes from a package that is not
//! installed, or from a value without a type), it cannot say that an edge is wrong. Such
//! edges of ours are counted, and not judged.

use std::collections::{BTreeSet, HashMap};

use super::head;
use super::scip::{Document, Index, Occurrence};

/// A place in a file where something is defined: the line from 1, or 0 for the whole file.
pub(super) type Place = (String, u32);

/// Edges from a place where something is said to a place where something is defined.
#[derive(Default)]
pub(super) struct Truth {
    /// The line of the call, and what is called.
    pub(super) calls: BTreeSet<(Place, Place)>,
    /// The importing file, and what is imported.
    pub(super) imports: BTreeSet<(Place, Place)>,
    /// The class, and what it is made from.
    pub(super) bases: BTreeSet<(Place, Place)>,
    /// The first of the places of a symbol, by each of them.
    first: HashMap<Place, Place>,
    /// The names that the index knows in each line.
    known: HashMap<Place, Vec<String>>,
    /// The first line of the import statement that each line is part of, from 1.
    statements: HashMap<Place, u32>,
    /// The import statements that the index knows something of, by their first lines.
    known_imports: BTreeSet<Place>,
    /// The files that the index has.
    pub(super) files: BTreeSet<String>,
}

impl Truth {
    /// The one place that stands for a symbol with several.
    pub(super) fn same(&self, place: &Place) -> Place {
        self.first.get(place).unwrap_or(place).clone()
    }
}

impl Truth {
    /// Whether the index knows what one of these names is in a line.
    pub(super) fn knows(&self, line: &Place, names: &[&str]) -> bool {
        let known = self.known.get(line).map(Vec::as_slice).unwrap_or_default();
        known.iter().any(|name| names.contains(&name.as_str()))
    }

    /// Whether the index knows what is imported in a line.
    pub(super) fn knows_import(&self, line: &Place) -> bool {
        let first = self.statements.get(line).copied().unwrap_or_default();
        self.known_imports.contains(&(line.0.clone(), first))
    }
}

/// Derives the edges of an index; `text` gives a file's lines, `is_definition` says whether
/// a local symbol that is defined at a place is more than a variable.
pub(super) fn truth(
    index: &Index,
    text: &dyn Fn(&str) -> Vec<String>,
    is_definition: &dyn Fn(&Place) -> bool,
) -> Truth {
    let mut truth = Truth::default();
    let mut symbols: HashMap<String, Place> = HashMap::new();
    for document in &index.documents {
        truth.files.insert(document.path.clone());
        // A module that another one adds to is still where it is.
        let defines = |one: &&Occurrence| one.defines && (!is_module(&one.symbol) || one.end == 0);
        for one in document.occurrences.iter().filter(defines) {
            let place = match is_module(&one.symbol) {
                true => (document.path.clone(), 0),
                false => (document.path.clone(), one.line as u32 + 1),
            };
            let first = symbols.entry(key(document, &one.symbol)).or_insert(place.clone());
            truth.first.insert(place, first.clone());
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
            let bases = head::bases(&document.path, &lines, class);
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
            let place = |symbol: &String| symbols.get(&key(document, symbol)).cloned();
            if let (true, Some(class), Some(base)) = (is_class, place(class), place(base)) {
                truth.bases.insert((class, base));
            }
        }
    }
    truth
}

/// Local symbols are counted anew in each file.
fn key(document: &Document, symbol: &str) -> String {
    match symbol.starts_with("local ") {
        true => format!("{} {symbol}", document.path),
        false => symbol.to_owned(),
    }
}

/// Where the symbol of a place is defined, unless it is a parameter.
fn target(
    symbols: &HashMap<String, Place>,
    document: &Document,
    one: &Occurrence,
) -> Option<Place> {
    let symbol = one.symbol.as_str();
    if symbol.ends_with(')') || symbol.ends_with(']') {
        return None;
    }
    let class = symbol.strip_suffix("`<constructor>`().");
    let class =
        class.or_else(|| symbol.strip_suffix("__init__().").filter(|_| one.end - one.start != 8));
    if let Some(place) = class.and_then(|class| symbols.get(class)) {
        return Some(place.clone());
    }
    if let Some(place) = symbols.get(&key(document, symbol)) {
        return Some(place.clone());
    }
    // The Python indexer names a module that is imported relatively without its package.
    let module = symbol.strip_suffix("/__init__:")?.rsplit(' ').next()?.trim_matches('`');
    let folder = document.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let steps = module.replace('.', "/");
    let named = |place: &&Place| {
        let stem = place.0.strip_suffix(".py").unwrap_or(&place.0);
        let stem = stem.strip_suffix("/__init__").unwrap_or(stem);
        let own = stem.strip_suffix(&steps).and_then(|root| root.strip_suffix('/'));
        place.1 == 0
            && own.is_some_and(|root| folder == root || folder.starts_with(&format!("{root}/")))
    };
    symbols.values().filter(named).max_by_key(|place| place.0.len()).cloned()
}

/// Files are symbols too.
fn is_module(symbol: &str) -> bool {
    symbol.ends_with("/__init__:") || symbol.ends_with("`/")
}

fn name(lines: &[String], one: &Occurrence) -> String {
    let line = lines.get(one.line).map(String::as_str).unwrap_or_default();
    line.chars().skip(one.start).take(one.end - one.start).collect()
}

/// Whether a bracket follows that opens arguments.
fn is_call(lines: &[String], one: &Occurrence) -> bool {
    let Some(line) = lines.get(one.line) else { return false };
    let units: Vec<char> = line.chars().collect();
    let before: String = units.get(..one.start).unwrap_or_default().iter().collect();
    // The Python indexer takes the second overload of a function for a use of the first.
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

/// For each line the first one of the import statement that it is part of, 0 for none.
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

/// Whether a bracket that an import opened before is still open.
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
