use isolith_types::{Certainty, CodeNode, DefinitionKind, Origin};

use crate::look::{Found, Look};

/// If a name has more definitions than this, a document means none of them.
const MOST_CANDIDATES: usize = 3;

/// What a document means by a name in code marks. One definition is meant for sure; of a few
/// each may be.
pub(crate) fn meant(look: &Look<'_>, target: &Origin) -> Vec<(CodeNode, Certainty)> {
    const MOST: usize = 40;
    let Origin::Name(text) = target else { return Vec::new() };
    let parts: Vec<&str> = text.split(['.', ':', '#']).filter(|part| !part.is_empty()).collect();
    let Some((last, before)) = parts.split_last() else { return Vec::new() };
    let Some(named) = look.named(last, MOST) else { return Vec::new() };
    let fits = |found: &Found| {
        let definition = found.definition();
        let around = before.last().is_none_or(|outer| {
            let mut names = definition.qualified.rsplit('.').skip(1);
            names.any(|name| name == *outer) || in_module(&found.file.path, outer)
        });
        let plain = matches!(definition.kind, DefinitionKind::Field | DefinitionKind::Variable);
        definition.kind != DefinitionKind::Section
            && !crate::tests::is_test_path(&found.file.path)
            && around
            // A bare word such as `name` is not every field of that name.
            && !(plain && before.is_empty())
    };
    let found: Vec<&Found> = named.iter().filter(|found| fits(found)).collect();
    let sure = match found.len() {
        0 => return Vec::new(),
        1 => Certainty::Resolved,
        2..=MOST_CANDIDATES => Certainty::Candidate,
        _ => return Vec::new(),
    };
    found.into_iter().map(|found| (found.node(), sure)).collect()
}

/// Whether a file is the module that a name before a dot may mean.
fn in_module(path: &str, name: &str) -> bool {
    path.split('/').any(|part| part.split('.').next() == Some(name))
}
