use std::collections::{HashMap, HashSet};

use isolith_types::{FileGraph, Imported, Origin, Reference, ReferenceKind};
use tree_sitter::Node;

use super::build::{Build, Draft, Site, line};
use super::origin::MOST_STEPS;
use super::scope::Source;
use super::syntax::{Place, Rule};

/// How many places are read between two looks at the clock.
const SITES_PER_LOOK: usize = 256;

/// Turns what the walk has gathered into plain data.
pub(super) fn finish(mut build: Build<'_>, go_on: &dyn Fn() -> bool) -> FileGraph {
    let Some(references) = references(&build, go_on) else { return FileGraph::default() };
    let meanings: Vec<Meaning> = build.drafts.iter().map(|draft| meaning(&build, draft)).collect();
    let mut seen: HashMap<String, u32> = HashMap::new();
    let drafts = std::mem::take(&mut build.drafts);
    let definitions = drafts.into_iter().zip(meanings).map(|(draft, meaning)| {
        let mut definition = draft.definition;
        let count = seen.entry(definition.qualified.clone()).or_default();
        definition.ordinal = *count;
        *count += 1;
        definition.value = Some(meaning.value).filter(is_of_use);
        definition.owner = meaning.owner.filter(is_of_use);
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

struct Meaning {
    value: Origin,
    owner: Option<Origin>,
    bases: Vec<Origin>,
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
    let stars = build.imports.iter().any(|import| import.what == Imported::All && !import.exported);
    let open = build.syntax.table.open || stars;
    let mut seen = HashSet::new();
    let mut references = Vec::new();
    for (index, site) in build.sites.iter().enumerate() {
        if index.is_multiple_of(SITES_PER_LOOK) && !go_on() {
            return None;
        }
        let Some(reference) = reference(build, site, open) else { continue };
        let said = (reference.within, reference.kind, reference.target.clone());
        if seen.insert(said) {
            references.push(reference);
        }
    }
    Some(references)
}

fn reference<'t>(build: &Build<'t>, site: &Site<'t>, open: bool) -> Option<Reference> {
    let place = Place { scope: site.scope, types: site.types, left: MOST_STEPS };
    let target = build.origin(site.node, place);
    let worthwhile = match root(&target) {
        Origin::Unknown => site.kind == ReferenceKind::Call && matches!(target, Origin::Member(..)),
        Origin::Name(_) => open,
        _ => true,
    };
    // A variable that is used is no use of where its value came from.
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
        Rule::Member(property) => node.child_by_field_name(property).unwrap_or(node),
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
