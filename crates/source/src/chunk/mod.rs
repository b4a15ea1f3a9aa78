mod assemble;
mod doc;
mod generated;
mod grammar;
mod lines;
mod markdown;
mod outline;
mod pieces;
mod tree;

use std::collections::HashMap;
use std::time::Duration;

use isolate::InWorker;
use isolith_types::Chunk;
use tree_sitter::Parser;

use self::grammar::Grammar;
use self::lines::Lines;
use self::outline::Outline;
use self::tree::Stopped;
use crate::Language;

/// Makes chunks of files. It keeps a parser for each language that it has met.
pub struct Chunker {
    ready: HashMap<Language, Option<Ready>>,
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
    /// Why it was cut as text, if its language has a grammar.
    pub problem: Option<String>,
}

struct Ready {
    parser: Parser,
    grammar: Grammar,
}

impl Chunker {
    /// A chunker without parsers; they are made when first needed.
    pub fn new(_token: InWorker) -> Self {
        Self { ready: HashMap::new() }
    }

    /// Cuts a file. There are always chunks, unless the text is only white space: when
    /// parsing takes longer than `budget`, or `cancelled` says so, the file is cut as text.
    pub fn chunk(
        &mut self,
        path: &str,
        text: &str,
        mode: Mode,
        budget: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Chunked {
        let language = Language::of(path, generated::head(text).as_bytes());
        let lines = Lines::of(text);
        let (outline, problem) = self.outline(language, &lines, mode, budget, cancelled);
        let chunks = match outline {
            Some(outline) => assemble::chunks(&lines, outline),
            None => assemble::text_chunks(&lines),
        };
        let generated = generated::is_generated(language, &lines);
        Chunked { language, generated, chunks, problem }
    }

    /// Parses a file and throws the tree away: what parsing costs by itself, for
    /// benchmarks. False if its language has no grammar.
    pub fn parse_only(&mut self, path: &str, text: &str) -> bool {
        let language = Language::of(path, generated::head(text).as_bytes());
        let ready = self.ready.entry(language).or_insert_with(|| Ready::new(language));
        ready.as_mut().is_some_and(|ready| ready.parser.parse(text, None).is_some())
    }

    /// What is defined where, or nothing if the file is to be cut as text, and why.
    fn outline(
        &mut self,
        language: Language,
        lines: &Lines<'_>,
        mode: Mode,
        budget: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> (Option<Outline>, Option<String>) {
        if language == Language::Markdown {
            return (Some(markdown::outline(lines)), None);
        }
        if mode == Mode::Plain || !language.has_grammar() {
            return (None, None);
        }
        let ready = self.ready.entry(language).or_insert_with(|| Ready::new(language));
        let Some(ready) = ready else {
            return (None, Some(format!("no parser for {language}; indexed as text")));
        };
        match tree::outline(&mut ready.parser, &ready.grammar, lines, budget, cancelled) {
            Ok(outline) => (Some(outline), None),
            Err(Stopped::Late) => {
                let seconds = budget.as_secs_f32();
                let why = format!("parsing took longer than {seconds} s; indexed as text");
                (None, Some(why))
            }
            Err(Stopped::Cancelled) => {
                (None, Some("parsing was cancelled; indexed as text".to_owned()))
            }
        }
    }
}

impl Ready {
    fn new(language: Language) -> Option<Self> {
        let grammar = Grammar::of(language)?;
        let mut parser = Parser::new();
        parser.set_language(grammar.language()).ok()?;
        Some(Self { parser, grammar })
    }
}
