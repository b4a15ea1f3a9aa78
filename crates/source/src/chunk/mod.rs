mod assemble;
mod doc;
mod generated;
mod grammar;
mod lines;
mod markdown;
mod outline;
mod pieces;
mod tree;
mod work;

use std::collections::HashMap;

use isolate_types::InWorker;
use isolith_types::{Chunk, FileGraph};
use tree_sitter::{Parser, Tree};

pub(crate) use self::doc::on_one_line;
use self::grammar::Grammar;
use self::lines::Lines;
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
    /// Without any native code: as text, Markdown at its headings.
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

/// What is defined where, and the tree that says so.
struct Read {
    outline: Outline,
    tree: Option<Tree>,
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
        let lines = Lines::of(text);
        let work = Work::new(limit, cancelled);
        let (read, problem) = self.read(language, &lines, mode, &work);
        let go_on = || work.step().is_ok();
        let graph = self.graph(path, language, read.as_ref(), &lines, &go_on);
        let chunks = match read {
            Some(read) => assemble::chunks(&lines, read.outline),
            None => assemble::text_chunks(&lines),
        };
        let generated = generated::is_generated(language, &lines);
        Chunked { language, generated, chunks, graph, problem }
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
        go_on: &dyn Fn() -> bool,
    ) -> FileGraph {
        let syntax = self.ready.get(&language).and_then(Option::as_ref);
        let syntax = syntax.and_then(|ready| ready.syntax.as_ref());
        match (read, syntax) {
            _ if !self.graphs => FileGraph::default(),
            (Some(Read { outline, .. }), _) if language == Language::Markdown => {
                graph::sections(&headings(outline), lines.text())
            }
            (Some(Read { tree: Some(tree), .. }), Some(syntax)) => {
                graph::file_graph(language, syntax, tree, lines.text(), go_on)
            }
            _ => FileGraph {
                language: language.name().to_owned(),
                manifest: graph::manifest(path, lines.text()),
                ..FileGraph::default()
            },
        }
    }

    /// What is defined where, or nothing if the file is to be cut as text, and why.
    fn read(
        &mut self,
        language: Language,
        lines: &Lines<'_>,
        mode: Mode,
        work: &Work<'_>,
    ) -> (Option<Read>, Option<String>) {
        if language == Language::Markdown {
            return (Some(Read { outline: markdown::outline(lines), tree: None }), None);
        }
        if mode == Mode::Plain || !language.has_grammar() {
            return (None, None);
        }
        let ready = self.ready.entry(language).or_insert_with(|| Ready::new(language));
        let Some(ready) = ready else {
            return (None, Some(format!("no parser for {language}; indexed as text")));
        };
        match tree::outline(&mut ready.parser, &ready.grammar, lines, work) {
            Ok((outline, tree)) => (Some(Read { outline, tree: Some(tree) }), None),
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
