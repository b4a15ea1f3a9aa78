use isolith_types::DefinitionKind;

use crate::evaluate::{EvalContext, Evaluator, Value};
use crate::modules;
use crate::project_view::DefinitionRef;

/// The maximum number of classes searched for one member.
const MAX_CLASSES: usize = 40;

impl Evaluator<'_, '_> {
    /// The member of a class or of its bases.
    pub(crate) fn class_member(
        &self,
        class: &DefinitionRef,
        name: &str,
        at: EvalContext<'_>,
    ) -> Option<DefinitionRef> {
        let key = (class.file.number, class.index);
        if let Some(known) = self.members.borrow().get(&key).and_then(|names| names.get(name)) {
            return known.clone();
        }
        let member = self.member_of(class, name, at, &mut Vec::new());
        if self.is_cacheable(at) {
            let mut members = self.members.borrow_mut();
            members.entry(key).or_default().insert(name.to_owned(), member.clone());
        }
        member
    }

    pub(crate) fn inherited(
        &self,
        class: &DefinitionRef,
        name: &str,
        at: EvalContext<'_>,
    ) -> Option<DefinitionRef> {
        let mut seen = vec![class.clone()];
        self.member_of_bases(class, name, at, &mut seen)
    }

    fn member_of(
        &self,
        class: &DefinitionRef,
        name: &str,
        at: EvalContext<'_>,
        seen: &mut Vec<DefinitionRef>,
    ) -> Option<DefinitionRef> {
        if seen.len() >= MAX_CLASSES || seen.iter().any(|other| other.is(class)) {
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
        class: &DefinitionRef,
        name: &str,
        at: EvalContext<'_>,
        seen: &mut Vec<DefinitionRef>,
    ) -> Option<DefinitionRef> {
        let definition = class.definition();
        let at = at.inside(&class.file).of_type();
        let alias = definition.value.as_ref().filter(|_| definition.kind == DefinitionKind::Type);
        for base in definition.bases.iter().chain(alias) {
            let base = match self.value(base, at) {
                Value::Applied(base, _) => *base,
                base => base,
            };
            let base = match base {
                Value::Definition(base) => base,
                Value::TypeOf(value) => match self.member(&value, name, at.of_value()) {
                    Value::Definition(member) => return Some(member),
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

    /// A member that is defined out of line: `impl`, `func (t T)`, `T::f() {}`.
    fn owned(
        &self,
        class: &DefinitionRef,
        name: &str,
        at: EvalContext<'_>,
    ) -> Option<DefinitionRef> {
        const MAX_DEFINITIONS: usize = 200;
        if !modules::has_out_of_line_members(&class.file.graph.language) {
            return None;
        }
        let of = class.definition();
        let candidates = self.view.named(name, MAX_DEFINITIONS)?;
        let owned = candidates.iter().find(|candidate| {
            let Some(owner) = &candidate.definition().owner else { return false };
            let owner = self.value(owner, at.inside(&candidate.file).of_type());
            let owner = match owner {
                Value::Applied(base, _) => *base,
                owner => owner,
            };
            matches!(&owner, Value::Definition(owner) if owner.is(class)
                || (owner.definition().qualified == of.qualified
                    && owner.file.number == class.file.number))
        });
        owned.cloned()
    }
}
