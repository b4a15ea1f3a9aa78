use std::rc::Rc;

use isolith_types::FastMap;
use tree_sitter::Node;

/// The scopes of a file and the names that are bound in them.
pub(super) struct Scopes<'t> {
    scopes: Vec<Scope>,
    /// By their scopes, and those of one scope in the order in which they were found.
    names: FastMap<&'t str, Vec<Binding<'t>>>,
    /// Whether variables are there only after their declaration.
    in_order: bool,
}

#[derive(Debug, Clone, Copy)]
struct Scope {
    around: Option<u32>,
    kind: ScopeKind,
}

/// What a scope belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScopeKind {
    File,
    /// A namespace: its names are seen by all that is inside.
    Namespace,
    /// A class or the like, by its definition.
    Class(u32),
    /// A function; a lambda has no definition.
    Function(Option<u32>),
    Block,
}

/// A name in a scope.
#[derive(Debug, Clone)]
struct Binding<'t> {
    scope: u32,
    /// The byte from which on it holds.
    at: usize,
    bound: Bound<'t>,
}

/// What a name stands for.
#[derive(Debug, Clone)]
pub(super) enum Bound<'t> {
    /// A definition that is a value, by its index.
    Definition(u32),
    /// One that is only a type, which may have the name of a value beside it.
    Type(u32),
    Import(u32),
    /// A parameter or a variable of a function.
    Local(Source<'t>),
}

/// Where the value of a variable comes from.
#[derive(Debug, Clone)]
pub(super) enum Source<'t> {
    Unknown,
    /// It is what this expression gives.
    Value(Node<'t>),
    /// It is of this type.
    Type(Node<'t>),
    /// It is this type itself, under another name.
    Alias(Node<'t>),
    /// It is a value of the class with this index.
    This(u32),
    /// It is the class with this index.
    Class(u32),
    Element(Rc<Source<'t>>),
    Member(Rc<Source<'t>>, &'t str),
}

impl<'t> Scopes<'t> {
    /// The scope of a file has the index 0.
    pub(super) fn new(in_order: bool) -> Self {
        let file = Scope { around: None, kind: ScopeKind::File };
        Self { scopes: vec![file], names: FastMap::default(), in_order }
    }

    pub(super) fn open(&mut self, around: u32, kind: ScopeKind) -> u32 {
        self.scopes.push(Scope { around: Some(around), kind });
        (self.scopes.len() - 1) as u32
    }

    pub(super) fn bind(&mut self, scope: u32, name: &'t str, at: usize, bound: Bound<'t>) {
        let bindings = self.names.entry(name).or_default();
        let index = bindings.partition_point(|binding| binding.scope <= scope);
        bindings.insert(index, Binding { scope, at, bound });
    }

    pub(super) fn kind(&self, scope: u32) -> ScopeKind {
        self.scopes.get(scope as usize).map_or(ScopeKind::File, |scope| scope.kind)
    }

    /// The scope itself and those around it, from inside out.
    pub(super) fn around(&self, scope: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(scope), |scope| {
            self.scopes.get(*scope as usize).and_then(|scope| scope.around)
        })
    }

    /// The class around a scope.
    pub(super) fn class(&self, scope: u32) -> Option<u32> {
        self.around(scope).find_map(|scope| match self.kind(scope) {
            ScopeKind::Class(class) => Some(class),
            _ => None,
        })
    }

    /// The scope of the function around, or of the file or class if there is none.
    pub(super) fn function(&self, scope: u32) -> u32 {
        let is_block = |scope: &u32| self.kind(*scope) == ScopeKind::Block;
        self.around(scope).find(|scope| !is_block(scope)).unwrap_or(0)
    }

    /// Whether a scope itself has a name.
    pub(super) fn has(&self, scope: u32, name: &str) -> bool {
        self.names.get(name).is_some_and(|bindings| in_scope(bindings, scope).next().is_some())
    }

    /// What a name means at a place: the scope that binds it, and what it is there. Members
    /// of classes are seen from inside methods only if `members` says so.
    pub(super) fn find(
        &self,
        name: &str,
        scope: u32,
        at: usize,
        types: bool,
        members: bool,
    ) -> Option<(u32, &Bound<'t>)> {
        let bindings = self.names.get(name)?;
        let mut outside = false;
        for scope in self.around(scope) {
            let kind = self.kind(scope);
            let seen = members || !outside || !matches!(kind, ScopeKind::Class(_));
            let there = |binding: &&Binding<'t>| {
                let waits = self.in_order && !outside && matches!(binding.bound, Bound::Local(_));
                binding.at <= at || !waits
            };
            let here = in_scope(bindings, scope).filter(there);
            if seen && let Some(bound) = chosen(here, at, types, outside) {
                return Some((scope, bound));
            }
            outside |= matches!(kind, ScopeKind::Function(_));
        }
        None
    }
}

/// The bindings of a name in one scope.
fn in_scope<'b, 't>(
    bindings: &'b [Binding<'t>],
    scope: u32,
) -> impl Iterator<Item = &'b Binding<'t>> {
    let first = bindings.partition_point(|binding| binding.scope < scope);
    bindings.iter().skip(first).take_while(move |binding| binding.scope == scope)
}

/// Of the bindings in one scope, the one that holds at a place: the last before it, or the
/// last of all where the order of running is not that of the text.
fn chosen<'b, 't: 'b>(
    here: impl Iterator<Item = &'b Binding<'t>>,
    at: usize,
    types: bool,
    outside: bool,
) -> Option<&'b Bound<'t>> {
    let rank = |binding: &Binding<'t>| {
        let fits = match binding.bound {
            Bound::Type(_) => types,
            Bound::Definition(_) => !types,
            _ => true,
        };
        let known = !matches!(binding.bound, Bound::Local(Source::Unknown));
        let before = outside || binding.at <= at;
        let order = if before { binding.at as i64 } else { -(binding.at as i64) };
        (fits, known && outside, before, order)
    };
    here.max_by_key(|binding| rank(binding)).map(|binding| &binding.bound)
}
