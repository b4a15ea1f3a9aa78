use isolith_types::{Definition, DefinitionKind, FastMap, FastSet, Import, ReferenceKind};
use tree_sitter::{Node, Tree};

use super::scope::{Bound, ScopeKind, Scopes, Source};
use super::syntax::{Field, Form, Rule, Syntax};
use crate::chunk::on_one_line;

/// How many visited nodes count as one step of work.
const NODES_PER_STEP: u32 = 1_024;

/// The longest name that is kept, in bytes.
const LONGEST_NAME: usize = 120;

/// The longest signature, in characters.
const SIGNATURE_CHARS: usize = 200;

/// How many `return`s of a function are looked at.
const MOST_RETURNS: usize = 6;

/// What is gathered in the walk over a tree.
pub(super) struct Build<'t> {
    pub(super) syntax: &'t Syntax,
    pub(super) text: &'t str,
    pub(super) drafts: Vec<Draft<'t>>,
    pub(super) imports: Vec<Import>,
    pub(super) sites: Vec<Site<'t>>,
    pub(super) scopes: Scopes<'t>,
    pub(super) namespace: Option<String>,
    /// The scope at hand.
    pub(super) scope: u32,
    /// The definition at hand.
    pub(super) within: Option<u32>,
    /// Types with the interfaces and traits that they are said to have elsewhere.
    pub(super) adopted: Vec<Adopted<'t>>,
    /// Whether the next definition is for tests.
    pub(super) next_is_test: bool,
    /// Where the export at hand ends.
    exporting: usize,
    /// The member that is called by the call at hand.
    callee: usize,
    /// Nodes ahead that what is around them has dealt with.
    passed: Vec<usize>,
    /// The fields that classes are known to have.
    members: FastSet<(u32, &'t str)>,
    /// Where variables get their names: no use of whatever has the same name outside.
    pub(super) declared: FastSet<usize>,
    /// Nodes ahead that are defined already, by what wraps them.
    wrapped: FastMap<usize, u32>,
}

/// A definition whose origins are still nodes.
pub(super) struct Draft<'t> {
    pub(super) definition: Definition,
    /// The scope in which its types and values are written.
    pub(super) scope: u32,
    pub(super) value: Source<'t>,
    /// What it gives back, if nothing declares that.
    pub(super) returns: Vec<(Node<'t>, u32)>,
    pub(super) owner: Option<Node<'t>>,
    pub(super) bases: Vec<Node<'t>>,
}

/// A type that gets an interface or trait away from its definition: `impl Trait for Type`.
pub(super) struct Adopted<'t> {
    pub(super) class: Node<'t>,
    pub(super) base: Node<'t>,
    pub(super) scope: u32,
}

/// A place where something is named.
pub(super) struct Site<'t> {
    pub(super) node: Node<'t>,
    pub(super) kind: ReferenceKind,
    pub(super) scope: u32,
    pub(super) within: Option<u32>,
    /// Whether what is named there is a type.
    pub(super) types: bool,
}

/// What the walk comes back to when it leaves a node.
struct Around {
    scope: u32,
    within: Option<u32>,
    /// Whether the node has only its first child visited.
    first: bool,
}

/// How the walk goes on after a node.
pub(super) enum Enter {
    /// With its children.
    Into,
    /// With its first child, and with no other if that is more than a sign: there is only what
    /// was just passed.
    First,
    /// With its next sibling.
    Over,
    /// With its children, which are in a new scope.
    Open(ScopeKind),
    /// With its children, which are in a scope that is open already, or in a definition.
    Inside(Option<u32>, Option<u32>),
}

impl<'t> Build<'t> {
    pub(super) fn new(syntax: &'t Syntax, text: &'t str) -> Self {
        Self {
            syntax,
            text,
            drafts: Vec::new(),
            imports: Vec::new(),
            sites: Vec::new(),
            scopes: Scopes::new(syntax.table.in_order),
            namespace: None,
            scope: 0,
            within: None,
            adopted: Vec::new(),
            next_is_test: false,
            exporting: 0,
            callee: 0,
            passed: Vec::new(),
            members: FastSet::default(),
            declared: FastSet::default(),
            wrapped: FastMap::default(),
        }
    }

    /// Visits all nodes in order, without recursion, as trees may be deeper than the stack.
    /// False if it was told to stop.
    pub(super) fn run(&mut self, tree: &'t Tree, go_on: &dyn Fn() -> bool) -> bool {
        let mut cursor = tree.walk();
        let mut outer: Vec<Around> = Vec::new();
        let mut visited = 0u32;
        loop {
            visited += 1;
            if visited.is_multiple_of(NODES_PER_STEP) && !go_on() {
                return false;
            }
            let (scope, within) = (self.scope, self.within);
            let enter = self.visit(cursor.node());
            if !matches!(enter, Enter::Over) && cursor.goto_first_child() {
                let mut around = Around { scope, within, first: false };
                match enter {
                    Enter::First if cursor.node().is_named() => {
                        around.first = true;
                        self.passed.pop();
                    }
                    Enter::Open(kind) => self.scope = self.scopes.open(self.scope, kind),
                    Enter::Inside(scope, definition) => {
                        self.scope = scope.unwrap_or(self.scope);
                        self.within = definition.or(self.within);
                    }
                    Enter::Into | Enter::First | Enter::Over => {}
                }
                outer.push(around);
                continue;
            }
            while outer.last().is_some_and(|around| around.first) || !cursor.goto_next_sibling() {
                let Some(around) = outer.pop() else { return true };
                (self.scope, self.within) = (around.scope, around.within);
                cursor.goto_parent();
            }
        }
    }

    fn visit(&mut self, node: Node<'t>) -> Enter {
        if self.take_passed(node) {
            return Enter::Over;
        }
        let entry = self.syntax.entry(node);
        match entry.rule {
            Rule::Pass => Enter::Into,
            Rule::Skip => Enter::Over,
            Rule::Block => Enter::Open(ScopeKind::Block),
            Rule::Name => {
                self.site(node, ReferenceKind::Use);
                Enter::Over
            }
            Rule::Type => {
                self.type_site(node, ReferenceKind::Use);
                Enter::Over
            }
            Rule::Call(field) => {
                if let Some(callee) = self.child(node, field) {
                    self.call(callee);
                }
                Enter::Into
            }
            Rule::Member(field) => {
                if self.callee != node.id() {
                    self.site(node, ReferenceKind::Use);
                }
                let Some(property) = self.child(node, field) else { return Enter::Into };
                self.pass(property);
                if is_pair(node, property) { Enter::First } else { Enter::Into }
            }
            Rule::Ask(rule) => rule(self, node),
        }
    }

    /// A call: what is called is not just a use of its name.
    pub(super) fn call(&mut self, callee: Node<'t>) {
        let callee = self.bare(callee);
        self.site(callee, ReferenceKind::Call);
        match self.syntax.entry(callee).rule {
            // What it is a member of is still to be visited.
            Rule::Member(..) => self.callee = callee.id(),
            Rule::Name | Rule::Type => self.pass(callee),
            _ => {}
        }
    }

    /// An expression without the brackets around it.
    fn bare(&self, mut node: Node<'t>) -> Node<'t> {
        for _ in 0..4 {
            match self.syntax.entry(node).form {
                Form::Same => match node.named_child(0) {
                    Some(child) => node = child,
                    None => return node,
                },
                _ => return node,
            }
        }
        node
    }

    /// A node ahead is not to be visited.
    pub(super) fn pass(&mut self, node: Node<'t>) {
        self.passed.push(node.id());
    }

    /// Whether a node was passed by what is around it.
    fn take_passed(&mut self, node: Node<'t>) -> bool {
        let id = node.id();
        match self.passed.iter().rposition(|passed| *passed == id) {
            Some(index) => {
                self.passed.swap_remove(index);
                true
            }
            None => false,
        }
    }

    pub(super) fn site(&mut self, node: Node<'t>, kind: ReferenceKind) {
        let (scope, within) = (self.scope, self.within);
        self.sites.push(Site { node, kind, scope, within, types: false });
    }

    pub(super) fn type_site(&mut self, node: Node<'t>, kind: ReferenceKind) {
        let (scope, within) = (self.scope, self.within);
        self.sites.push(Site { node, kind, scope, within, types: true });
    }

    /// The text of a node.
    pub(super) fn of(&self, node: Node<'t>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// What a node has in a field.
    pub(super) fn child(&self, node: Node<'t>, field: Field) -> Option<Node<'t>> {
        self.syntax.child(node, field)
    }

    /// The text of a field of a node.
    pub(super) fn field(&self, node: Node<'t>, field: Field) -> Option<&'t str> {
        self.child(node, field).map(|child| self.of(child))
    }

    /// Whether a child of a node has this text: a modifier or keyword.
    pub(super) fn has_word(&self, node: Node<'t>, word: &str) -> bool {
        children(node).any(|child| self.of(child) == word)
    }

    /// Notes a definition, and binds it in the scope at hand. Nothing if the name is none.
    pub(super) fn define(
        &mut self,
        node: Node<'t>,
        name: Node<'t>,
        kind: DefinitionKind,
    ) -> Option<u32> {
        let text = self.of(name).trim_matches(['"', '\'']);
        let index = self.note(node, name, text, kind, self.within)?;
        let is_type = matches!(kind, DefinitionKind::Interface | DefinitionKind::Type);
        let bound = if is_type { Bound::Type(index) } else { Bound::Definition(index) };
        self.scopes.bind(self.scope, text, node.start_byte(), bound);
        Some(index)
    }

    /// The same under any name and in any other definition, without binding it.
    pub(super) fn note(
        &mut self,
        node: Node<'t>,
        name: Node<'t>,
        text: &str,
        kind: DefinitionKind,
        parent: Option<u32>,
    ) -> Option<u32> {
        if text.is_empty() || text.len() > LONGEST_NAME || text.contains('\n') {
            return None;
        }
        let index = self.drafts.len() as u32;
        let definition = Definition {
            parent,
            kind,
            name: text.to_owned(),
            // It is known when all owners are.
            qualified: String::new(),
            ordinal: 0,
            line: line(name),
            start_line: line(node),
            end_line: last_line(node),
            signature: None,
            exported: false,
            test: std::mem::take(&mut self.next_is_test),
            declared: false,
            owner: None,
            value: None,
            bases: Vec::new(),
        };
        let scope = self.scope;
        let (value, returns) = (Source::Unknown, Vec::new());
        let draft = Draft { definition, scope, value, returns, owner: None, bases: Vec::new() };
        self.drafts.push(draft);
        Some(index)
    }

    pub(super) fn draft(&mut self, index: u32) -> Option<&mut Draft<'t>> {
        self.drafts.get_mut(index as usize)
    }

    /// What is said of a definition besides its name: where its declaration ends.
    pub(super) fn sign(&mut self, index: u32, node: Node<'t>, body: Option<Node<'t>>) {
        let end = body.map_or(node.end_byte(), |body| body.start_byte());
        let text = self.text.get(node.start_byte()..end).unwrap_or_default();
        let mut signature = on_one_line(text.split_whitespace(), SIGNATURE_CHARS);
        signature.truncate(signature.trim_end_matches([' ', '{', ':', '=']).len());
        if let Some(draft) = self.draft(index) {
            draft.definition.signature = Some(signature).filter(|text| !text.is_empty());
        }
    }

    /// A node ahead is this definition already.
    pub(super) fn wrap(&mut self, node: Node<'t>, index: u32) {
        self.wrapped.insert(node.id(), index);
    }

    pub(super) fn take_wrapped(&mut self, node: Node<'t>) -> Option<u32> {
        self.wrapped.remove(&node.id())
    }

    /// Binds a name of a function, in a scope, to where its value comes from.
    pub(super) fn bind(&mut self, scope: u32, name: Node<'t>, at: usize, source: Source<'t>) {
        let text = self.of(name);
        self.declared.insert(name.start_byte());
        self.scopes.bind(scope, text, at, Bound::Local(source));
    }

    /// Opens a scope in the one at hand.
    pub(super) fn open(&mut self, kind: ScopeKind) -> u32 {
        self.scopes.open(self.scope, kind)
    }

    /// Whether a class has no member of this name yet; from now on it has.
    pub(super) fn is_new_member(&mut self, class: u32, name: &'t str) -> bool {
        self.members.insert((class, name))
    }

    pub(super) fn import(&mut self, import: Import, name: Option<&'t str>, at: usize) {
        let index = self.imports.len() as u32;
        self.imports.push(import);
        if let Some(name) = name {
            self.scopes.bind(self.scope, name, at, Bound::Import(index));
        }
    }

    /// All imports after so many are of types alone.
    pub(super) fn only_types(&mut self, after: usize) {
        self.imports.iter_mut().skip(after).for_each(|import| import.type_only = true);
    }

    /// A value that the function around gives back.
    pub(super) fn returned(&mut self, value: Node<'t>) {
        let scope = self.scope;
        let function = self.scopes.function(scope);
        if let ScopeKind::Function(Some(index)) = self.scopes.kind(function)
            && let Some(draft) = self.draft(index)
            && draft.returns.len() < MOST_RETURNS
        {
            draft.returns.push((value, scope));
        }
    }

    /// What starts before this byte is exported.
    pub(super) fn export_until(&mut self, end: usize) {
        self.exporting = end;
    }

    /// Whether a node is part of an export.
    pub(super) fn is_exporting(&self, node: Node<'t>) -> bool {
        node.start_byte() < self.exporting && self.is_outside_functions()
    }

    /// Whether the place at hand is that of a file's or a class's own names.
    pub(super) fn is_outside_functions(&self) -> bool {
        !self
            .scopes
            .around(self.scope)
            .any(|scope| matches!(self.scopes.kind(scope), ScopeKind::Function(_)))
    }
}

/// Whether a node begins with something and ends with this property of it, with nothing but
/// signs between them.
fn is_pair(node: Node<'_>, property: Node<'_>) -> bool {
    node.named_child_count() == 2 && property.start_byte() != node.start_byte()
}

/// The children of a node.
pub(super) fn children<'t>(node: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    let mut cursor = node.walk();
    let mut begun = false;
    std::iter::from_fn(move || {
        let there = match std::mem::replace(&mut begun, true) {
            false => cursor.goto_first_child(),
            true => cursor.goto_next_sibling(),
        };
        there.then(|| cursor.node())
    })
}

/// The named children of a node.
pub(super) fn named<'t>(node: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    children(node).filter(|child| child.is_named() && !child.is_extra())
}

/// The first named child of a node that is not a comment.
pub(super) fn first_named<'t>(node: Node<'t>) -> Option<Node<'t>> {
    let count = node.named_child_count() as u32;
    (0..count).filter_map(|index| node.named_child(index)).find(|child| !child.is_extra())
}

/// The first child of a kind.
pub(super) fn child_of<'t>(node: Node<'t>, kind: &str) -> Option<Node<'t>> {
    children(node).find(|child| child.kind() == kind)
}

/// The line where a node starts, from 1.
pub(super) fn line(node: Node<'_>) -> u32 {
    node.start_position().row as u32 + 1
}

fn last_line(node: Node<'_>) -> u32 {
    let (start, end) = (node.start_position(), node.end_position());
    let row = if end.column == 0 && end.row > start.row { end.row - 1 } else { end.row };
    row as u32 + 1
}
