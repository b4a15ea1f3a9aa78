use isolith_types::Origin;
use tree_sitter::Node;

use super::build::{Build, first_named, named};
use super::scope::{Bound, Source};
use super::syntax::{Form, Place};

/// How many steps from a name to what it means are followed.
pub(super) const MOST_STEPS: u32 = 16;

impl<'t> Build<'t> {
    /// What a node means, as a value or as a type.
    pub(super) fn origin(&self, node: Node<'t>, place: Place) -> Origin {
        let Some(left) = place.left.checked_sub(1) else { return Origin::Unknown };
        let place = Place { left, ..place };
        if place.types
            && let Some(read) = self.syntax.table.read_type
            && let Some(origin) = read(self, node, place)
        {
            return origin;
        }
        let of = |field| match self.child(node, field) {
            Some(child) => self.origin(child, place),
            None => Origin::Unknown,
        };
        match self.syntax.entry(node).form {
            Form::Unknown => Origin::Unknown,
            Form::Name => self.name(self.of(node), node.start_byte(), place),
            Form::This => self.scopes.class(place.scope).map_or(Origin::Unknown, Origin::This),
            Form::Super => self.scopes.class(place.scope).map_or(Origin::Unknown, Origin::Super),
            Form::Member(object, property) => match self.field(node, property) {
                // `a.f<T>` is called `f`.
                Some(name) => member(of(object), name.split('<').next().unwrap_or(name).trim_end()),
                None => Origin::Unknown,
            },
            Form::Call(field) => call(of(field)),
            Form::Same => self.first(node, place),
            Form::Field(field) => of(field),
            Form::Element(field) => element(of(field)),
            Form::Awaited => awaited(self.first(node, place)),
            Form::Applied(base, arguments) => {
                self.applied(self.child(node, base), self.child(node, arguments), place)
            }
            Form::Ask(read) => read(self, node, place),
        }
    }

    /// What the first named child of a node means.
    pub(super) fn first(&self, node: Node<'t>, place: Place) -> Origin {
        first_named(node).map_or(Origin::Unknown, |child| self.origin(child, place))
    }

    /// A value of a type.
    pub(super) fn instance(&self, node: Node<'t>, place: Place) -> Origin {
        instance(self.origin(node, Place { types: true, ..place }))
    }

    /// A type with others in brackets.
    pub(super) fn applied(
        &self,
        base: Option<Node<'t>>,
        arguments: Option<Node<'t>>,
        place: Place,
    ) -> Origin {
        let Some(base) = base else { return Origin::Unknown };
        let base = self.origin(base, place);
        let Some(arguments) = arguments else { return base };
        let arguments = named(arguments).take(4).map(|one| self.origin(one, place)).collect();
        Origin::Applied(Box::new(base), arguments)
    }

    /// What a name means at a place in the text.
    pub(super) fn name(&self, name: &str, at: usize, place: Place) -> Origin {
        let table = self.syntax.table;
        let found = self.scopes.find(name, place.scope, at, place.types, table.bare_members);
        match found {
            Some((_, Bound::Definition(index) | Bound::Type(index))) => Origin::Definition(*index),
            Some((_, Bound::Import(index))) => Origin::Import(*index),
            Some((scope, Bound::Local(source))) => {
                self.source(source, Place { scope, types: false, ..place })
            }
            None => match self.scopes.class(place.scope).filter(|_| table.bare_members) {
                Some(class) => Origin::Implicit(class, name.to_owned()),
                None => Origin::Name(name.to_owned()),
            },
        }
    }

    /// What a bare name means that is called as a method: never a variable.
    pub(super) fn method(&self, name: &str, place: Place) -> Origin {
        let found = self.scopes.find(name, place.scope, usize::MAX, false, true);
        match (found, self.scopes.class(place.scope)) {
            (Some((_, Bound::Definition(index))), _) if self.is_callable(*index) => {
                Origin::Definition(*index)
            }
            (Some((_, Bound::Import(index))), _) => Origin::Import(*index),
            (_, Some(class)) => Origin::Implicit(class, name.to_owned()),
            (_, None) => Origin::Name(name.to_owned()),
        }
    }

    fn is_callable(&self, index: u32) -> bool {
        self.drafts.get(index as usize).is_some_and(|draft| draft.definition.kind.is_callable())
    }

    /// What a variable is.
    pub(super) fn source(&self, source: &Source<'t>, place: Place) -> Origin {
        let Some(left) = place.left.checked_sub(1) else { return Origin::Unknown };
        let place = Place { left, ..place };
        match source {
            Source::Unknown => Origin::Unknown,
            Source::Value(node) => self.origin(*node, place),
            Source::Type(node) => self.instance(*node, place),
            Source::Alias(node) => self.origin(*node, Place { types: true, ..place }),
            Source::This(class) => Origin::This(*class),
            Source::Class(class) => Origin::Definition(*class),
            Source::Element(inner) => element(self.source(inner, place)),
            Source::Member(inner, name) => member(self.source(inner, place), name),
        }
    }
}

pub(super) fn member(object: Origin, name: &str) -> Origin {
    Origin::Member(Box::new(object), name.to_owned())
}

pub(super) fn call(callee: Origin) -> Origin {
    known(callee, Origin::Call)
}

pub(super) fn instance(of: Origin) -> Origin {
    known(of, Origin::Instance)
}

pub(super) fn element(of: Origin) -> Origin {
    known(of, Origin::Element)
}

pub(super) fn awaited(of: Origin) -> Origin {
    known(of, Origin::Awaited)
}

/// What is made of something unknown is unknown itself.
fn known(of: Origin, make: fn(Box<Origin>) -> Origin) -> Origin {
    match of {
        Origin::Unknown => Origin::Unknown,
        of => make(Box::new(of)),
    }
}
