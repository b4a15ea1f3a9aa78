use isolith_types::DefinitionKind;

use crate::look::Found;
use crate::modules;
use crate::value::{At, Evaluate, Value};

/// How many classes are gone through for one member.
const MOST_CLASSES: usize = 40;

impl Evaluate<'_, '_> {
    /// The member of a class or of one that it is made from.
    pub(crate) fn class_member(&self, class: &Found, name: &str, at: At<'_>) -> Option<Found> {
        let key = (class.file.number, class.index);
        if let Some(known) = self.members.borrow().get(&key).and_then(|names| names.get(name)) {
            return known.clone();
        }
        let member = self.member_of(class, name, at, &mut Vec::new());
        if self.is_certain(at) {
            let mut members = self.members.borrow_mut();
            members.entry(key).or_default().insert(name.to_owned(), member.clone());
        }
        member
    }

    pub(crate) fn inherited(&self, class: &Found, name: &str, at: At<'_>) -> Option<Found> {
        let mut seen = vec![class.clone()];
        self.member_of_bases(class, name, at, &mut seen)
    }

    fn member_of(
        &self,
        class: &Found,
        name: &str,
        at: At<'_>,
        seen: &mut Vec<Found>,
    ) -> Option<Found> {
        if seen.len() >= MOST_CLASSES || seen.iter().any(|other| other.is(class)) {
            return None;
        }
        seen.push(class.clone());
        if let Some(child) = class.file.child(class.index, name, false) {
            return Some(child);
        }
        if let Some(member) = self.owned(class, name, at) {
            return Some(member);
        }
        self.member_of_bases(class, name, at, seen)
    }

    fn member_of_bases(
        &self,
        class: &Found,
        name: &str,
        at: At<'_>,
        seen: &mut Vec<Found>,
    ) -> Option<Found> {
        let definition = class.definition();
        let at = at.inside(&class.file).of_type();
        let alias = definition.value.as_ref().filter(|_| definition.kind == DefinitionKind::Type);
        for base in definition.bases.iter().chain(alias) {
            let base = match self.value(base, at) {
                Value::Applied(base, _) => *base,
                base => base,
            };
            let base = match base {
                Value::Found(base) => base,
                Value::TypeOf(value) => match self.member(&value, name, at.of_value()) {
                    Value::Found(member) => return Some(member),
                    _ => continue,
                },
                _ => continue,
            };
            if let Some(member) = self.member_of(&base, name, at, seen) {
                return Some(member);
            }
        }
        None
    }

    /// A member that is defined away from its class: `impl`, `func (t T)`, `T::f() {}`.
    fn owned(&self, class: &Found, name: &str, at: At<'_>) -> Option<Found> {
        const MOST: usize = 200;
        if !modules::has_distant_members(&class.file.graph.language) {
            return None;
        }
        let of = class.definition();
        let candidates = self.look.named(name, MOST)?;
        let owned = candidates.iter().find(|candidate| {
            let Some(owner) = &candidate.definition().owner else { return false };
            let owner = self.value(owner, at.inside(&candidate.file).of_type());
            let owner = match owner {
                Value::Applied(base, _) => *base,
                owner => owner,
            };
            matches!(&owner, Value::Found(owner) if owner.is(class)
                || (owner.definition().qualified == of.qualified
                    && owner.file.number == class.file.number))
        });
        owned.cloned()
    }
}
