use std::hash::BuildHasher;

use isolith_types::{FastMap, FileGraph, Imported, Origin, Reference, ReferenceKind};
use tree_sitter::Node;

use super::build::{Build, Draft, Site, line};
use super::names;
use super::origin::MOST_STEPS;
use super::scope::{Bound, Source};
use super::syntax::{Form, Open, Place, Rule};

/// How many places that are read count as one step of work.
const SITES_PER_STEP: usize = 256;

/// Turns what the walk has gathered into plain data.
pub(super) fn finish(mut build: Build<'_>, go_on: &dyn Fn() -> bool) -> FileGraph {
    let Some(mut references) = references(&build, go_on) else { return FileGraph::default() };
    let mut meanings: Vec<Meaning> =
        build.drafts.iter().map(|draft| meaning(&build, draft)).collect();
    adopt(&build, &mut meanings, &mut references);
    let qualified = names::qualified(&build, &meanings);
    let ordinals = ordinals(&qualified);
    let drafts = std::mem::take(&mut build.drafts);
    let names = qualified.into_iter().zip(ordinals);
    let definitions = drafts.into_iter().zip(meanings).zip(names);
    let definitions = definitions.map(|((draft, meaning), (qualified, ordinal))| {
        let mut definition = draft.definition;
        definition.qualified = qualified;
        definition.ordinal = ordinal;
        definition.parent = meaning.class().or(definition.parent);
        definition.value = Some(meaning.value).filter(is_of_use);
        definition.owner =
            meaning.owner.filter(|owner| class_of(owner).is_none() && is_of_use(owner));
        definition.bases = meaning.bases.into_iter().filter(is_of_use).collect();
        definition
    });
    FileGraph {
        language: String::new(),
        namespace: build.namespace.take(),
        definitions: definitions.collect(),
        imports: std::mem::take(&mut build.imports),
        references,
        manifest: None,
    }
}

/// How many times each name came before.
fn ordinals(names: &[String]) -> Vec<u32> {
    let mut seen: FastMap<&str, u32> = FastMap::default();
    let count = |name| {
        let count = seen.entry(name).or_default();
        *count += 1;
        *count - 1
    };
    names.iter().map(String::as_str).map(count).collect()
}

/// What a type is said to have away from its definition becomes part of it.
fn adopt(build: &Build<'_>, meanings: &mut [Meaning], references: &mut Vec<Reference>) {
    for adopted in &build.adopted {
        let place = Place { scope: adopted.scope, types: true, left: MOST_STEPS };
        let base = build.origin(adopted.base, place);
        let class = class_of(&build.origin(adopted.class, place));
        let Some(class) = class.filter(|_| is_of_use(&base)) else { continue };
        if let Some(meaning) = meanings.get_mut(class as usize) {
            meaning.bases.push(base.clone());
            references.push(Reference {
                within: Some(class),
                kind: ReferenceKind::Implement,
                target: base,
                line: line(adopted.base),
            });
        }
    }
}

/// The definition of the same file that a type is.
pub(super) fn class_of(origin: &Origin) -> Option<u32> {
    match origin {
        Origin::Definition(index) => Some(*index),
        Origin::Applied(base, _) => class_of(base),
        _ => None,
    }
}

/// What the nodes of a draft mean.
pub(super) struct Meaning {
    value: Origin,
    owner: Option<Origin>,
    bases: Vec<Origin>,
}

impl Meaning {
    /// The class of the same file that it is a member of by its owner's name.
    pub(super) fn class(&self) -> Option<u32> {
        self.owner.as_ref().and_then(class_of)
    }
}

fn meaning<'t>(build: &Build<'t>, draft: &Draft<'t>) -> Meaning {
    let place = Place { scope: draft.scope, types: false, left: MOST_STEPS };
    let types = Place { types: true, ..place };
    let value = match draft.value {
        Source::Unknown => returned(build, draft, place),
        ref source => build.source(source, place),
    };
    let owner = draft.owner.map(|owner| build.origin(owner, types));
    let bases = draft.bases.iter().map(|base| build.origin(*base, types)).collect();
    Meaning { value, owner, bases }
}

/// What a function gives back, if all its `return`s agree.
fn returned<'t>(build: &Build<'t>, draft: &Draft<'t>, place: Place) -> Origin {
    let mut origins = draft
        .returns
        .iter()
        .map(|(node, scope)| build.origin(*node, Place { scope: *scope, ..place }));
    let Some(first) = origins.next() else { return Origin::Unknown };
    if origins.all(|other| other == first) { first } else { Origin::Unknown }
}

fn references(build: &Build<'_>, go_on: &dyn Fn() -> bool) -> Option<Vec<Reference>> {
    let stars = build.imports.iter().any(|import| import.what == Imported::All);
    let mut once = Once::default();
    for (index, site) in build.sites.iter().enumerate() {
        if index.is_multiple_of(SITES_PER_STEP) && !go_on() {
            return None;
        }
        if !is_variable(build, site)
            && let Some(reference) = reference(build, site, stars)
        {
            once.add(reference);
        }
    }
    Some(once.references)
}

/// References, each of them once.
#[derive(Default)]
struct Once {
    references: Vec<Reference>,
    /// Where they are, by their hashes, so that nothing is copied to be compared. Of two
    /// that have the same hash by chance, the later is under the next number.
    places: FastMap<u64, usize>,
}

impl Once {
    fn add(&mut self, reference: Reference) {
        let mut hash = self.places.hasher().hash_one(said(&reference));
        while let Some(place) = self.places.get(&hash) {
            if self.references.get(*place).map(said) == Some(said(&reference)) {
                return;
            }
            hash = hash.wrapping_add(1);
        }
        self.places.insert(hash, self.references.len());
        self.references.push(reference);
    }
}

/// What a reference says, wherever it is.
fn said(reference: &Reference) -> (Option<u32>, ReferenceKind, &Origin) {
    (reference.within, reference.kind, &reference.target)
}

/// Most names are those of variables, of which nothing is to be said.
fn is_variable(build: &Build<'_>, site: &Site<'_>) -> bool {
    let is_value = site.kind == ReferenceKind::Use && !site.types;
    if !is_value || !matches!(build.syntax.entry(site.node).form, Form::Name) {
        return false;
    }
    let (name, at) = (build.of(site.node), site.node.start_byte());
    if build.declared.contains(&at) {
        return true;
    }
    let members = build.syntax.table.bare_members;
    let found = build.scopes.find(name, site.scope, at, false, members);
    matches!(found, Some((_, Bound::Local(source))) if !matches!(source, Source::Alias(_)))
}

fn reference<'t>(build: &Build<'t>, site: &Site<'t>, stars: bool) -> Option<Reference> {
    let place = Place { scope: site.scope, types: site.types, left: MOST_STEPS };
    let called = build.syntax.table.callee.filter(|_| site.kind == ReferenceKind::Call);
    let called = called.and_then(|read| read(build, site.node, place));
    let target = called.unwrap_or_else(|| build.origin(site.node, place));
    let worthwhile = match root(&target) {
        Origin::Unknown => site.kind == ReferenceKind::Call && matches!(target, Origin::Member(..)),
        Origin::Name(_) => match build.syntax.table.open {
            Open::Never => false,
            Open::Stars => stars,
            Open::Paths => stars || matches!(target, Origin::Member(..)),
            Open::Always => true,
        },
        _ => true,
    };
    // A variable that is used is not a use of where its value came from.
    let mere_value = matches!(
        target,
        Origin::Call(_)
            | Origin::Instance(_)
            | Origin::This(_)
            | Origin::Super(_)
            | Origin::Element(_)
            | Origin::Awaited(_)
    );
    let kept = worthwhile && (!mere_value || keeps_value(site.kind, &target));
    kept.then(|| Reference {
        within: site.within,
        kind: site.kind,
        target,
        line: line(last_name(build, site.node)),
    })
}

/// Of `a.b.c` it is `c` that is meant, which may stand on another line.
fn last_name<'t>(build: &Build<'t>, node: Node<'t>) -> Node<'t> {
    match build.syntax.entry(node).rule {
        Rule::Member(field) => build.child(node, field).unwrap_or(node),
        _ => node,
    }
}

/// `super()` calls what is inherited.
fn keeps_value(kind: ReferenceKind, target: &Origin) -> bool {
    kind == ReferenceKind::Call && matches!(target, Origin::Super(_))
}

fn is_of_use(origin: &Origin) -> bool {
    !matches!(root(origin), Origin::Unknown)
}

/// What an origin begins with.
fn root(origin: &Origin) -> &Origin {
    let mut origin = origin;
    while let Origin::Member(inner, _)
    | Origin::Call(inner)
    | Origin::Instance(inner)
    | Origin::Applied(inner, _)
    | Origin::Element(inner)
    | Origin::Awaited(inner) = origin
    {
        origin = inner;
    }
    origin
}
