use std::ops::{ControlFlow, Range};

use isolith_types::SymbolKind;
use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

use super::grammar::{Action, Answer, Found, Grammar, Inside};
use super::lines::Lines;
use super::macros::without_macros;
use super::outline::{Cut, Definition, Outline};
use super::pieces::MOST_CHARS;
use super::work::{Stopped, Work};

/// Constants that take more bytes begin a chunk of their own.
const LARGE_CONSTANT: usize = 300;

/// How many visited nodes are one step of work.
const NODES_PER_STEP: u32 = 1_024;

/// Parses a text, or only the given parts of it, and lists what it defines, and gives the tree. A
/// tree that is mostly errors still gives the definitions that were recognised.
pub(super) fn outline(
    parser: &mut Parser,
    grammar: &Grammar,
    lines: &Lines<'_>,
    parts: &[Range<usize>],
    work: &Work<'_>,
) -> Result<(Outline, Tree), Stopped> {
    let ranges: Vec<_> = parts.iter().map(|part| lines.range_of(part)).collect();
    let placed = parser.set_included_ranges(&ranges);
    debug_assert!(placed.is_ok(), "parts are in order");
    let hidden = if grammar.has_macros() { without_macros(lines.text()) } else { None };
    let tree = parse(parser, hidden.as_deref().unwrap_or(lines.text()), work);
    let whole = parser.set_included_ranges(&[]);
    debug_assert!(whole.is_ok(), "no ranges are always in order");
    let tree = tree?;
    let mut walk = Walk {
        parser,
        grammar,
        lines,
        work,
        outline: Outline::default(),
        frames: vec![Frame::default()],
        scopes: Vec::new(),
        parsed_again: 0,
    };
    walk.run(&tree)?;
    let outline = walk.outline;
    Ok((outline, tree))
}

/// The parser reports after every 100 operations, counted from the start of the text.
fn parse(parser: &mut Parser, text: &str, work: &Work<'_>) -> Result<Tree, Stopped> {
    work.step()?;
    let mut stopped = Stopped::TooMuchWork;
    let mut progress = |_: &ParseState| match work.step() {
        Ok(()) => ControlFlow::Continue(()),
        Err(why) => {
            stopped = why;
            ControlFlow::Break(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let bytes = text.as_bytes();
    let mut read = |at: usize, _| bytes.get(at..).unwrap_or_default();
    match parser.parse_with_options(&mut read, None, Some(options)) {
        Some(tree) => Ok(tree),
        None => {
            // Otherwise the next file would go on where this one stopped.
            parser.reset();
            Err(stopped)
        }
    }
}

/// The way through a tree: only into nodes that can hold definitions, and without
/// recursion, as trees may be deeper than the stack.
struct Walk<'w> {
    parser: &'w mut Parser,
    grammar: &'w Grammar,
    lines: &'w Lines<'w>,
    work: &'w Work<'w>,
    outline: Outline,
    /// One for each node that was entered.
    frames: Vec<Frame>,
    /// The definitions that were entered, and what is in them.
    scopes: Vec<(usize, Inside)>,
    /// How many trees of parts are being walked inside each other.
    parsed_again: usize,
}

/// What is known among the children of one node.
#[derive(Default)]
struct Frame {
    /// Comments and attributes that may belong to the next definition.
    lead: Option<Lead>,
    /// Where the declaration of the next definition begins, if the node wraps it.
    head: Option<usize>,
    /// The first row of the node, if it wraps.
    wraps: Option<usize>,
    /// The last row of the child before.
    row_before: Option<usize>,
    /// Whether something other than comments came before.
    seen: bool,
    /// Whether the child before was a definition, with nothing loose after it.
    after_definition: bool,
    /// Whether the node is itself a definition, with a scope.
    scope: bool,
    /// The first row of a branch, on which only its condition stands.
    branch: Option<usize>,
}

struct Lead {
    first_row: usize,
    last_row: usize,
    doc: Range<usize>,
    /// Whether the next comment goes on documenting.
    doc_open: bool,
    /// Whether it belongs to the next definition in any case.
    attached: bool,
}

impl Walk<'_> {
    /// Visits the nodes of a tree in order. The last frame is that of its root.
    fn run(&mut self, tree: &Tree) -> Result<(), Stopped> {
        let mut cursor = tree.walk();
        if !cursor.goto_first_child() {
            return Ok(());
        }
        let root = self.frames.len();
        let mut visited = 0u32;
        loop {
            visited += 1;
            if visited.is_multiple_of(NODES_PER_STEP) {
                self.work.step()?;
            }
            let node = cursor.node();
            if let Some(frame) = self.visit(node)? {
                if cursor.goto_first_child() {
                    self.frames.push(frame);
                    continue;
                }
                self.leave(frame);
            }
            while !cursor.goto_next_sibling() {
                if self.frames.len() <= root || !cursor.goto_parent() {
                    return Ok(());
                }
                if let Some(frame) = self.frames.pop() {
                    self.leave(frame);
                }
            }
        }
    }

    /// Takes note of a node, and says with what to enter it, if it is to be entered.
    fn visit(&mut self, node: Node<'_>) -> Result<Option<Frame>, Stopped> {
        let enter = match self.grammar.action(node) {
            Action::Skip | Action::Modifiers => self.loose(node, None),
            Action::Enter => self.loose(node, Some(Frame::default())),
            Action::EnterLarge => {
                let large = node.byte_range().len() > MOST_CHARS;
                self.loose(node, large.then(Frame::default))
            }
            Action::Branch => Some(self.branch(node)),
            Action::Wrap => Some(self.wrap(node)),
            Action::Comment => self.comment(node, true),
            Action::Attribute => self.comment(node, false),
            Action::Define(shape) => match shape.found(node, self.lines.text()) {
                Some(found) => self.define(node, found),
                None => self.loose(node, shape.inside.is_open().then(Frame::default)),
            },
            Action::Ask(question) => match question(node, self.lines.text()) {
                Answer::Skip => self.loose(node, None),
                Answer::Enter => self.loose(node, Some(Frame::default())),
                Answer::Wrap => Some(self.wrap(node)),
                Answer::Comment => self.comment(node, true),
                Answer::Attribute => self.comment(node, false),
                Answer::Found(found) => self.define(node, found),
                Answer::Code(part) => {
                    self.parse_again(node, part)?;
                    None
                }
            },
        };
        self.frame().row_before = Some(last_row(node));
        Ok(enter)
    }

    /// Parses what is in brackets by itself and walks that. Code inside functions is not
    /// worth it.
    fn parse_again(&mut self, node: Node<'_>, part: Node<'_>) -> Result<(), Stopped> {
        const DEEPEST: usize = 3;
        let in_code = self.scopes.last().is_some_and(|(_, inside)| *inside == Inside::Code);
        let worthwhile = !in_code && self.parsed_again < DEEPEST;
        let range = inner_range(part).filter(|_| worthwhile);
        if range.is_none_or(|range| self.parser.set_included_ranges(&[range]).is_err()) {
            self.loose(node, None);
            return Ok(());
        }
        let tree = parse(self.parser, self.lines.text(), self.work);
        let whole = self.parser.set_included_ranges(&[]);
        debug_assert!(whole.is_ok(), "no ranges are always in order");
        let tree = tree?;
        let frame = self.branch(node);
        self.frames.push(frame);
        self.parsed_again += 1;
        self.run(&tree)?;
        self.parsed_again -= 1;
        if let Some(frame) = self.frames.pop() {
            self.frame().after_definition |= frame.after_definition;
        }
        Ok(())
    }

    fn leave(&mut self, frame: Frame) {
        if frame.scope {
            self.scopes.pop();
        }
        let Some(row) = frame.wraps else { return };
        if frame.seen {
            self.frame().seen = true;
            self.frame().after_definition = frame.after_definition;
        } else {
            self.loose_at(row);
        }
    }

    /// Something that defines nothing: it ends what comments before it were for.
    fn loose(&mut self, node: Node<'_>, enter: Option<Frame>) -> Option<Frame> {
        let row = node.start_position().row;
        let frame = self.frame();
        if node.is_named() && frame.wraps.is_none() && frame.branch != Some(row) {
            self.loose_at(row);
        }
        enter
    }

    fn loose_at(&mut self, row: usize) {
        let depth = self.scopes.len();
        let frame = self.frame();
        let row = frame.lead.take().map_or(row, |lead| lead.first_row);
        frame.seen = true;
        if std::mem::take(&mut frame.after_definition) {
            self.cut(row, depth, true);
        }
    }

    /// A definition that opens a branch takes the line of the condition with it.
    fn branch(&mut self, node: Node<'_>) -> Frame {
        let row = node.start_position().row;
        let start = node.start_byte();
        let mut lead = Lead::new(row, row, start..start);
        lead.attached = true;
        self.loose_at(row);
        Frame { lead: Some(lead), branch: Some(row), ..Frame::default() }
    }

    /// The children of a wrapper take over what was before it.
    fn wrap(&mut self, node: Node<'_>) -> Frame {
        let row = node.start_position().row;
        let head = self.grammar.head_start(node);
        let frame = self.frame();
        let outer_head = frame.head.take();
        let (first_row, doc) = Lead::taken(frame.lead.take(), row, frame.seen);
        let mut lead = Lead::new(first_row, row, doc);
        lead.attached = true;
        lead.doc_open = lead.doc.is_empty();
        let after_definition = frame.after_definition;
        Frame {
            lead: Some(lead),
            head: outer_head.or(Some(head)),
            wraps: Some(row),
            after_definition,
            ..Frame::default()
        }
    }

    fn comment(&mut self, node: Node<'_>, documents: bool) -> Option<Frame> {
        let range = node.byte_range();
        let (first, last) = (node.start_position().row, last_row(node));
        let inner = documents && self.grammar.is_inner_doc(&self.lines.text()[range.clone()]);
        let frame = self.frame();
        if inner {
            frame.lead = None;
            return None;
        }
        // At the end of a line it belongs to that line.
        if documents && frame.row_before == Some(first) {
            return None;
        }
        let doc = if documents { range } else { range.start..range.start };
        match &mut frame.lead {
            Some(lead) if lead.attached || lead.last_row + 1 >= first => {
                if documents && lead.doc_open {
                    let start = if lead.doc.is_empty() { doc.start } else { lead.doc.start };
                    lead.doc = start..doc.end;
                } else if !documents {
                    lead.doc_open = lead.doc.is_empty();
                }
                lead.last_row = last;
            }
            // After a gap only the last comment documents, but all of them may lead over
            // to the next definition, unless they are the head of the file.
            Some(lead) if frame.seen => {
                *lead = Lead { first_row: lead.first_row, ..Lead::new(first, last, doc) };
            }
            lead => *lead = Some(Lead::new(first, last, doc)),
        }
        None
    }

    fn define(&mut self, node: Node<'_>, found: Found<'_>) -> Option<Frame> {
        let within = self.scopes.last().map_or(Inside::Namespace, |(_, inside)| *inside);
        let constant = found.symbol == Some(SymbolKind::Constant);
        if constant && within == Inside::Code {
            return self.loose(node, None);
        }
        if self.goes_on(node, &found) {
            return None;
        }
        let member = found.owner.is_some() || within == Inside::Members;
        let symbol = match found.symbol {
            Some(SymbolKind::Function) if member => Some(SymbolKind::Method),
            symbol => symbol,
        };
        let row = node.start_position().row;
        let (cut_row, doc) = self.take_lead(row);
        let depth = self.scopes.len();
        let small = constant && (node.byte_range().len() < LARGE_CONSTANT || member);
        if small || found.declared {
            let loose = std::mem::take(&mut self.frame().after_definition);
            if loose {
                self.cut(cut_row, depth, true);
            }
        } else {
            self.cut(cut_row, depth, false);
            self.frame().after_definition = true;
        }
        let index = self.push(node, &found, symbol, cut_row, doc);
        self.enter(node, found.inside, index)
    }

    /// A further clause of the same function, in languages that write them so.
    fn goes_on(&mut self, node: Node<'_>, found: &Found<'_>) -> bool {
        if !self.grammar.has_clauses() || !self.frame().seen {
            return false;
        }
        let parent = self.scopes.last().map(|(index, _)| *index);
        let callable = |symbol: Option<SymbolKind>| symbol.is_some_and(SymbolKind::is_callable);
        match self.outline.definitions.last_mut() {
            Some(last)
                if callable(last.symbol)
                    && callable(found.symbol)
                    && last.parent == parent
                    && last.name == found.name =>
            {
                last.extent.end = node.end_byte();
                self.frame().lead = None;
                true
            }
            _ => false,
        }
    }

    /// The row where the chunk of a definition begins, and its documentation.
    fn take_lead(&mut self, row: usize) -> (usize, Range<usize>) {
        let frame = self.frame();
        let seen = std::mem::replace(&mut frame.seen, true);
        Lead::taken(frame.lead.take(), row, seen)
    }

    fn push(
        &mut self,
        node: Node<'_>,
        found: &Found<'_>,
        symbol: Option<SymbolKind>,
        first_row: usize,
        doc: Range<usize>,
    ) -> usize {
        let text = self.lines.text();
        let body = self.grammar.body(found.value.unwrap_or(node));
        let inner_doc = body.and_then(|body| self.grammar.docstring(body, text));
        let start = self.frame().head.take().unwrap_or_else(|| self.grammar.head_start(node));
        let end = body.map_or(node.end_byte(), |body| body.start_byte());
        let parent = self.scopes.last().map(|(index, _)| *index);
        self.outline.definitions.push(Definition {
            name: found.name.clone(),
            symbol,
            lead: self.lines.start(first_row).min(node.start_byte()),
            extent: node.byte_range(),
            parent,
            owner: found.owner.clone(),
            head: start.min(end)..end,
            doc: inner_doc.unwrap_or(doc),
        });
        self.outline.definitions.len() - 1
    }

    fn enter(&mut self, node: Node<'_>, inside: Inside, index: usize) -> Option<Frame> {
        let enter = match inside {
            Inside::Nothing => false,
            Inside::Code => node.byte_range().len() > MOST_CHARS,
            Inside::Members | Inside::Namespace => true,
        };
        if !enter {
            return None;
        }
        self.scopes.push((index, inside));
        Some(Frame { scope: true, ..Frame::default() })
    }

    fn cut(&mut self, row: usize, depth: usize, loose: bool) {
        self.outline.cuts.push(Cut { at: self.lines.start(row), depth, loose });
    }

    fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(Frame::default());
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }
}

impl Lead {
    fn new(first_row: usize, last_row: usize, doc: Range<usize>) -> Self {
        Self { first_row, last_row, doc, doc_open: true, attached: false }
    }

    /// Where a definition in a row begins with its lead, and what documents it. A comment
    /// may stand a blank line before it. What is further away goes with it without
    /// documenting it, unless it is the head of the file or block.
    fn taken(lead: Option<Self>, row: usize, seen: bool) -> (usize, Range<usize>) {
        match lead {
            Some(lead) if lead.attached || lead.last_row + 1 >= row => (lead.first_row, lead.doc),
            Some(lead) if seen && lead.last_row + 2 >= row => (lead.first_row, lead.doc),
            Some(lead) if seen => (lead.first_row, 0..0),
            _ => (row, 0..0),
        }
    }
}

/// What is between the brackets of a node.
fn inner_range(node: Node<'_>) -> Option<tree_sitter::Range> {
    let mut range = node.range();
    range.start_byte += 1;
    range.start_point.column += 1;
    range.end_byte = range.end_byte.checked_sub(1)?;
    range.end_point.column = range.end_point.column.checked_sub(1)?;
    (range.start_byte < range.end_byte).then_some(range)
}

/// The row of a node's last character. Some grammars count a line end to the node.
fn last_row(node: Node<'_>) -> usize {
    let end = node.end_position();
    let first = node.start_position().row;
    if end.column == 0 && end.row > first { end.row - 1 } else { end.row }
}
