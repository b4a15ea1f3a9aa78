use isolith_types::{Certainty, CodeNode, DefinitionKind, Origin};

use crate::project_view::{DefinitionRef, ProjectView};

/// A mention of a name with more definitions than this is ignored as ambiguous.
const MAX_CANDIDATES: usize = 3;

/// The definitions that a code span in a document may mean: resolved if there is only one,
/// candidates if there are a few.
pub(crate) fn mentioned(view: &ProjectView<'_>, target: &Origin) -> Vec<(CodeNode, Certainty)> {
    const MAX_DEFINITIONS: usize = 40;
    let Origin::Name(text) = target else { return Vec::new() };
    let parts: Vec<&str> = text.split(['.', ':', '#']).filter(|part| !part.is_empty()).collect();
    let Some((last, before)) = parts.split_last() else { return Vec::new() };
    let Some(named) = view.named(last, MAX_DEFINITIONS) else { return Vec::new() };
    let fits = |found: &DefinitionRef| {
        let definition = found.definition();
        let around = before.last().is_none_or(|outer| {
            let mut names = definition.qualified.rsplit('.').skip(1);
            names.any(|name| name == *outer) || in_module(&found.file.path, outer)
        });
        let plain = matches!(definition.kind, DefinitionKind::Field | DefinitionKind::Variable);
        definition.kind != DefinitionKind::Section
            && !crate::tests::is_test_path(&found.file.path)
            && around
            // A bare word such as `name` does not mean a field or variable of that name.
            && !(plain && before.is_empty())
    };
    let found: Vec<&DefinitionRef> = named.iter().filter(|found| fits(found)).collect();
    let sure = match found.len() {
        0 => return Vec::new(),
        1 => Certainty::Resolved,
        2..=MAX_CANDIDATES => Certainty::Candidate,
        _ => return Vec::new(),
    };
    found.into_iter().map(|found| (found.node(), sure)).collect()
}

/// Whether a part of the path is the module `name`.
fn in_module(path: &str, name: &str) -> bool {
    path.split('/').any(|part| part.split('.').next() == Some(name))
}
