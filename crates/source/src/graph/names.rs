use super::build::Build;
use super::finish::Meaning;

/// How many definitions are gone through from one to the outermost around it.
const DEEPEST: usize = 40;

/// The names of definitions with those around them, joined by dots. What is written away
/// from its class has the class in its name all the same.
pub(super) fn qualified(build: &Build<'_>, meanings: &[Meaning]) -> Vec<String> {
    let all = 0..build.drafts.len();
    let mut names = Vec::new();
    all.map(|index| {
        names.clear();
        let mut next = Some(index);
        while let Some(index) = next.filter(|_| names.len() < DEEPEST) {
            let (Some(draft), Some(meaning)) = (build.drafts.get(index), meanings.get(index))
            else {
                break;
            };
            names.push(draft.definition.name.as_str());
            let around = meaning.class().or(draft.definition.parent);
            if let Some(owner) = draft.owner.filter(|_| meaning.class().is_none()) {
                names.push(bare(build.of(owner)));
            }
            next = around.map(|around| around as usize);
        }
        names.reverse();
        names.join(".")
    })
    .collect()
}

/// `*pkg.List[T]` is called `List`.
fn bare(name: &str) -> &str {
    let name = name.split(['<', '[', '(']).next().unwrap_or(name).trim();
    name.rsplit(['.', ':', '*', '&', ' ']).next().unwrap_or(name)
}
