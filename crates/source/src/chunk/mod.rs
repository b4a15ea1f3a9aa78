mod assemble;
mod component;
mod doc;
mod embedded;
mod generated;
mod grammar;
mod lines;
mod macros;
mod notebook;
mod outline;
mod pieces;
mod scan;
mod tree;
mod work;

use std::collections::HashMap;
use std::ops::Range;

use isolate_types::InWorker;
use isolith_types::{Chunk, FileGraph};
use tree_sitter::{Parser, Tree};

pub(crate) use self::doc::on_one_line;
use self::embedded::Embedded;
use self::grammar::Grammar;
use self::lines::Lines;
use self::notebook::Notebook;
use self::outline::{Definition, Outline};
pub use self::work::WorkLimit;
use self::work::{Stopped, Work};
use crate::Language;
use crate::graph::{self, Heading, Syntax};

/// Makes chunks of files. It keeps a parser for each language that it has met.
pub struct Chunker {
    ready: HashMap<Language, Option<Ready>>,
    graphs: bool,
}

/// How a file is to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// With the grammar of its language, if there is one.
    Parsed,
    /// Without any native code: as text, documents at their headings.
    Plain,
}

/// A file in chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunked {
    /// What the file is written in.
    pub language: Language,
    /// Whether it says of itself that a program wrote it, or looks minified.
    pub generated: bool,
    /// Its chunks, in order: every line that is not blank is in one of them, and in one
    /// only. A line of over 2,000 characters may go on in the next chunk.
    pub chunks: Vec<Chunk>,
    /// What it defines, imports and refers to, as far as the graph knows its language.
    pub graph: FileGraph,
    /// Why it was cut as text, if its language has a grammar.
    pub problem: Option<String>,
}

struct Ready {
    parser: Parser,
    grammar: Grammar,
    /// Nothing if the graph does not know the language.
    syntax: Option<Syntax>,
}

/// What is defined where, and the tree that says so, with its language.
struct Read {
    outline: Outline,
    tree: Option<(Language, Tree)>,
}

/// How a file is read.
#[derive(Clone, Copy)]
struct How<'w> {
    mode: Mode,
    work: &'w Work<'w>,
}

impl Chunker {
    /// A chunker without parsers; they are made when first needed.
    pub fn new(_token: InWorker) -> Self {
        Self { ready: HashMap::new(), graphs: true }
    }

    /// The same, but files get no graph: what that costs, for benchmarks.
    pub fn without_graphs(mut self) -> Self {
        self.graphs = false;
        self
    }

    /// Cuts a file. There are always chunks, unless the text is only white space: when
    /// parsing takes more work than `limit`, or `cancelled` says so, the file is cut as text.
    pub fn chunk(
        &mut self,
        path: &str,
        text: &str,
        mode: Mode,
        limit: WorkLimit,
        cancelled: &dyn Fn() -> bool,
    ) -> Chunked {
        let language = Language::of(path, generated::head(text).as_bytes());
        let work = Work::new(limit, cancelled);
        let how = How { mode, work: &work };
        let lines = Lines::of(text);
        let generated = generated::is_generated(language, &lines);
        if let Some(notebook) =
            (language == Language::Notebook).then(|| Notebook::read(text)).flatten()
        {
            return Chunked { generated, ..self.notebook(path, &notebook, how) };
        }
        let (read, problem) = self.read(language, &lines, how);
        let graph = self.graph(path, language, read.as_ref(), &lines, how);
        let chunks = match read {
            Some(read) => assemble::chunks(&lines, read.outline),
            None => assemble::text_chunks(&lines),
        };
        Chunked { language, generated, chunks, graph, problem }
    }

    /// The cells of a notebook instead of its file.
    fn notebook(&mut self, path: &str, notebook: &Notebook, how: How<'_>) -> Chunked {
        let language = Language::Notebook;
        let lines = Lines::of(&notebook.text);
        let (read, problem) = self.embedded(notebook.embedded(&lines), &lines, how);
        let mut graph = self.graph(path, language, Some(&read), &lines, how);
        let mut chunks = assemble::chunks(&lines, read.outline);
        notebook.place(&mut chunks, &mut graph);
        Chunked { language, generated: false, chunks, graph, problem }
    }

    /// Parses a file and throws the tree away: what parsing costs by itself, for
    /// benchmarks. False if its language has no grammar.
    pub fn parse_only(&mut self, path: &str, text: &str) -> bool {
        let language = Language::of(path, generated::head(text).as_bytes());
        let ready = self.ready.entry(language).or_insert_with(|| Ready::new(language));
        ready.as_mut().is_some_and(|ready| ready.parser.parse(text, None).is_some())
    }

    fn graph(
        &self,
        path: &str,
        language: Language,
        read: Option<&Read>,
        lines: &Lines<'_>,
        how: How<'_>,
    ) -> FileGraph {
        let syntax = |language| self.ready.get(language)?.as_ref()?.syntax.as_ref();
        let plain = || FileGraph {
            language: language.name().to_owned(),
            manifest: graph::manifest(path, lines.text()),
            ..FileGraph::default()
        };
        match read {
            _ if !self.graphs => FileGraph::default(),
            Some(Read { outline, .. }) if language.is_document() => {
                graph::sections(language, &headings(outline), lines.text())
            }
            Some(Read { tree: Some((own, tree)), .. }) => match syntax(own) {
                Some(syntax) => {
                    let go_on = || how.work.step().is_ok();
                    graph::file_graph(*own, syntax, tree, lines.text(), &go_on)
                }
                None => plain(),
            },
            _ => plain(),
        }
    }

    /// What is defined where, or nothing if the file is to be cut as text, and why.
    fn read(
        &mut self,
        language: Language,
        lines: &Lines<'_>,
        how: How<'_>,
    ) -> (Option<Read>, Option<String>) {
        if let Some(outline) = scan::outline(language, lines) {
            return (Some(Read { outline, tree: None }), None);
        }
        if matches!(language, Language::Vue | Language::Svelte) {
            let (read, problem) = self.embedded(component::scripts(lines), lines, how);
            return (Some(read), problem);
        }
        self.parse(language, lines, &[], how)
    }

    /// What is defined in and around code that is part of a file.
    fn embedded(
        &mut self,
        embedded: Embedded,
        lines: &Lines<'_>,
        how: How<'_>,
    ) -> (Read, Option<String>) {
        let Embedded { language, code, mut outline } = embedded;
        if code.is_empty() {
            return (Read { outline, tree: None }, None);
        }
        let (read, problem) = self.parse(language, lines, &code, how);
        let mut tree = None;
        if let Some(read) = read {
            outline.join(read.outline);
            tree = read.tree;
        }
        (Read { outline, tree }, problem)
    }

    /// What a grammar finds in a text, or in parts of it.
    fn parse(
        &mut self,
        language: Language,
        lines: &Lines<'_>,
        parts: &[Range<usize>],
        how: How<'_>,
    ) -> (Option<Read>, Option<String>) {
        if how.mode == Mode::Plain || !language.has_grammar() {
            return (None, None);
        }
        let ready = self.ready.entry(language).or_insert_with(|| Ready::new(language));
        let Some(ready) = ready else {
            return (None, Some(format!("no parser for {language}; indexed as text")));
        };
        match tree::outline(&mut ready.parser, &ready.grammar, lines, parts, how.work) {
            Ok((outline, tree)) => (Some(Read { outline, tree: Some((language, tree)) }), None),
            Err(Stopped::TooMuchWork) => {
                (None, Some("parsing takes too much work; indexed as text".to_owned()))
            }
            Err(Stopped::Cancelled) => {
                (None, Some("parsing was cancelled; indexed as text".to_owned()))
            }
        }
    }
}

/// What of an outline's headings the graph wants to know.
fn headings(outline: &Outline) -> Vec<Heading<'_>> {
    let mut headings = Vec::with_capacity(outline.definitions.len());
    for Definition { name, parent, extent, .. } in &outline.definitions {
        headings.push(Heading { name, parent: *parent, extent: extent.clone() });
    }
    headings
}

impl Ready {
    fn new(language: Language) -> Option<Self> {
        let grammar = Grammar::of(language)?;
        let mut parser = Parser::new();
        parser.set_language(grammar.language()).ok()?;
        let syntax = Syntax::of(language, grammar.language());
        Some(Self { parser, grammar, syntax })
    }
}
