use std::ops::Range;

use isolith_types::{Chunk, ChunkKind, FileGraph, Symbol, SymbolKind};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::embedded::Embedded;
use super::lines::Lines;
use super::outline::Outline;
use super::scan;
use crate::Language;

/// The cells of a Jupyter notebook, without what they printed.
pub(super) struct Notebook {
    /// The sources of all cells, one after the other.
    pub(super) text: String,
    language: Language,
    cells: Vec<Cell>,
    /// The line of the file that each row of the text comes from.
    line_of_row: Vec<u32>,
}

struct Cell {
    kind: CellKind,
    rows: Range<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CellKind {
    Code,
    Markdown,
    Text,
}

impl Notebook {
    /// Nothing if a file is not a notebook.
    pub(super) fn read(file: &str) -> Option<Self> {
        let stored: Stored<'_> = serde_json::from_str(file).ok()?;
        if stored.cells.is_none() && stored.worksheets.is_none() {
            return None;
        }
        let language = stored.language().unwrap_or(Language::Python);
        let sheets = stored.worksheets.into_iter().flatten().flat_map(|sheet| sheet.cells);
        let cells = stored.cells.into_iter().flatten().chain(sheets);
        let mut notebook =
            Self { text: String::new(), language, cells: Vec::new(), line_of_row: Vec::new() };
        let mut lines = LineCounter { file, at: 0, line: 1 };
        for cell in cells {
            let kind = match cell.cell_type {
                "code" => CellKind::Code,
                "markdown" | "heading" => CellKind::Markdown,
                _ => CellKind::Text,
            };
            if let Some(source) = cell.source.or(cell.input) {
                notebook.add(kind, source, &mut lines)?;
            }
        }
        Some(notebook)
    }

    fn add(
        &mut self,
        kind: CellKind,
        source: &RawValue,
        lines: &mut LineCounter<'_>,
    ) -> Option<()> {
        let first = self.line_of_row.len();
        let strings: Vec<&RawValue> = match source.get().starts_with('[') {
            true => serde_json::from_str(source.get()).ok()?,
            false => vec![source],
        };
        for string in strings {
            // A lone surrogate cannot be decoded; the rest of the notebook can.
            let decoded = serde_json::from_str::<String>(string.get());
            let decoded = decoded.unwrap_or_else(|_| string.get().to_owned());
            let line = lines.line_of(string.get())?;
            for part in decoded.split_inclusive('\n') {
                if self.text.is_empty() || self.text.ends_with('\n') {
                    self.line_of_row.push(line);
                }
                self.text.push_str(part);
            }
        }
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        let rows = first..self.line_of_row.len();
        if !rows.is_empty() {
            self.cells.push(Cell { kind, rows });
        }
        Some(())
    }

    /// What is code in a notebook, and what is not. Each cell has chunks of its own.
    pub(super) fn embedded(&self, lines: &Lines<'_>) -> Embedded {
        let (mut code, mut outline) = (Vec::new(), Outline::default());
        for Cell { kind, rows } in &self.cells {
            let range = lines.start(rows.start)..lines.start(rows.end);
            outline.walls.push(range.end);
            match kind {
                CellKind::Markdown => outline.join(scan::markdown_part(lines, rows.clone())),
                CellKind::Code if !is_foreign(lines.row(rows.start)) => {
                    code.extend(code_of(lines, rows.clone()));
                }
                CellKind::Code | CellKind::Text => outline.parts.push((range, ChunkKind::Text)),
            }
        }
        Embedded { language: self.language, code, outline }
    }

    /// Gives chunks the heading before them as parent, and chunks and their graph the lines of the
    /// file.
    pub(super) fn place(&self, chunks: &mut [Chunk], graph: &mut FileGraph) {
        let line = |line: &mut u32| {
            let row = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
            let last = self.line_of_row.last().copied().unwrap_or(1);
            *line = self.line_of_row.get(row).copied().unwrap_or(last);
        };
        let mut section = None;
        for chunk in chunks {
            let is_heading = |symbol: &&Symbol| symbol.kind == SymbolKind::Heading;
            match chunk.symbols.iter().rfind(is_heading) {
                Some(heading) => section = Some(heading.name.clone()),
                None => chunk.parent = chunk.parent.take().or_else(|| section.clone()),
            }
            line(&mut chunk.start_line);
            line(&mut chunk.end_line);
            chunk.symbols.iter_mut().for_each(|symbol| line(&mut symbol.line));
        }
        for definition in &mut graph.definitions {
            line(&mut definition.line);
            line(&mut definition.start_line);
            line(&mut definition.end_line);
        }
        graph.imports.iter_mut().for_each(|import| line(&mut import.line));
        graph.references.iter_mut().for_each(|reference| line(&mut reference.line));
    }
}

/// Whether a cell's first line says that the cell is in another language: `%%bash`.
fn is_foreign(first: &str) -> bool {
    const OF_THE_KERNEL: [&str; 4] = ["%%time", "%%timeit", "%%capture", "%%prun"];
    let word = first.split_whitespace().next().unwrap_or_default();
    word.starts_with("%%") && !OF_THE_KERNEL.contains(&word)
}

/// The lines of a cell that are code, not commands to the notebook: `%cd`, `!ls`, `?help`.
fn code_of(lines: &Lines<'_>, rows: Range<usize>) -> Vec<Range<usize>> {
    let mut code: Vec<Range<usize>> = Vec::new();
    for row in rows {
        if lines.row(row).trim_start().starts_with(['%', '!', '?']) {
            continue;
        }
        let range = lines.start(row)..lines.start(row + 1);
        match code.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => code.push(range),
        }
    }
    code
}

/// Finds the lines of places in a file that come in order.
struct LineCounter<'t> {
    file: &'t str,
    at: usize,
    line: u32,
}

impl LineCounter<'_> {
    /// The line where a part of the file begins. Nothing if it is not a later part of it.
    fn line_of(&mut self, part: &str) -> Option<u32> {
        let place = (part.as_ptr() as usize).checked_sub(self.file.as_ptr() as usize)?;
        let between = self.file.as_bytes().get(self.at..place)?;
        let lines = between.iter().filter(|byte| **byte == b'\n').count();
        self.line = self.line.saturating_add(u32::try_from(lines).ok()?);
        self.at = place;
        Some(self.line)
    }
}

/// A notebook as it is stored: cells in worksheets until version 3.
#[derive(Deserialize)]
struct Stored<'f> {
    #[serde(borrow)]
    cells: Option<Vec<StoredCell<'f>>>,
    #[serde(borrow)]
    worksheets: Option<Vec<Worksheet<'f>>>,
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Worksheet<'f> {
    #[serde(borrow)]
    cells: Vec<StoredCell<'f>>,
}

#[derive(Deserialize)]
struct StoredCell<'f> {
    cell_type: &'f str,
    #[serde(borrow)]
    source: Option<&'f RawValue>,
    #[serde(borrow)]
    input: Option<&'f RawValue>,
}

#[derive(Deserialize)]
struct Metadata {
    kernelspec: Option<Kernel>,
    language_info: Option<LanguageInfo>,
}

#[derive(Deserialize)]
struct Kernel {
    language: Option<String>,
}

#[derive(Deserialize)]
struct LanguageInfo {
    name: Option<String>,
}

impl Stored<'_> {
    /// The language that the kernel says it runs.
    fn language(&self) -> Option<Language> {
        let metadata = self.metadata.as_ref()?;
        let info = metadata.language_info.as_ref().and_then(|info| info.name.as_deref());
        let kernel = metadata.kernelspec.as_ref().and_then(|kernel| kernel.language.as_deref());
        Language::from_name(info.or(kernel)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_know_their_lines() {
        let file = "{\"cells\": [\n {\"cell_type\": \"code\", \"outputs\": [\n  \"x\"],\n  \"source\": [\n   \
                    \"a = 1\\n\",\n   \"b\"\n  ]},\n {\"cell_type\": \"raw\", \"source\": \"c\\nd\"}]}";
        let notebook = Notebook::read(file).unwrap();
        assert_eq!(notebook.text, "a = 1\nb\nc\nd\n");
        assert_eq!(notebook.line_of_row, [5, 6, 8, 8]);
    }

    #[test]
    fn what_is_no_notebook_is_none() {
        for file in ["", "{", "{}", "[]", "{\"cells\": 1}", "{\"cells\": [{\"source\": \"\"}]}"] {
            assert!(Notebook::read(file).is_none(), "{file}");
        }
        assert_eq!(Notebook::read("{\"cells\": []}").unwrap().text, "");
    }

    #[test]
    fn commands_are_not_code() {
        let text = "%cd x\nimport a\n!ls\n  !ls\nb = 1\n";
        let lines = Lines::of(text);
        let code: Vec<&str> = code_of(&lines, 0..5).into_iter().map(|it| &text[it]).collect();
        assert_eq!(code, ["import a\n", "b = 1\n"]);
        assert!(is_foreign("%%bash\n") && !is_foreign("%%time\n") && !is_foreign("%time f()\n"));
    }
}
