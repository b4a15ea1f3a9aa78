//! Finds files in folders of older versions, such as `v1beta1/` beside `v1/`.

use isolith_types::FastMap;

use super::{FileRole, name_roles};

/// How finished a version is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Alpha,
    Beta,
    Candidate,
    Stable,
}

/// The version in the name of a folder: `v2`, `v1beta1`, `api-v3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    major: u32,
    stage: Stage,
    number: u32,
}

/// A path split at a folder that has a version in its name.
struct Versioned<'p> {
    /// What comes before the version.
    before: &'p str,
    /// The version as written.
    name: &'p str,
    version: Version,
    /// The folder without the separator that follows it.
    parent: &'p str,
    /// What comes after the folder.
    rest: &'p str,
}

/// For each path, the name of its version if the paths show a newer one: a folder that differs in
/// the version only, or the files of `v1/` beside that folder. A version that is less finished
/// does not count as newer.
pub(crate) fn superseded<'p>(paths: &[&'p str]) -> Vec<Option<&'p str>> {
    let split: Vec<Option<Versioned<'p>>> = paths.iter().map(|path| split(path)).collect();
    let mut versions: FastMap<&str, Vec<Version>> = FastMap::default();
    for it in split.iter().flatten() {
        versions.entry(it.before).or_default().push(it.version);
    }
    let copies = Copies::in_first_versions(&split, paths);
    let is_superseded = |it: &Versioned<'p>| {
        versions[it.before].iter().any(|other| other.supersedes(it.version))
            || copies.get(it.parent).is_some_and(|copies| copies.are_of_current_files())
    };
    split.iter().map(|it| it.as_ref().filter(|it| is_superseded(it)).map(|it| it.name)).collect()
}

/// The files of a folder `v1/`, and how many of them exist beside the folder, too.
#[derive(Default)]
struct Copies {
    files: usize,
    current: usize,
}

/// Minimum number of files with the same names that make `v1/` a copy of what is beside it.
const MIN_COPIES: usize = 2;

impl Copies {
    /// An interface such as `api/v1/` has files of its own.
    fn are_of_current_files(&self) -> bool {
        self.current >= MIN_COPIES && self.current == self.files
    }

    /// By parent folder. In Go, a folder of a later version is newer than what is beside it, and
    /// files such as `__init__.py` are in every folder.
    fn in_first_versions<'p>(
        split: &[Option<Versioned<'p>>],
        paths: &[&'p str],
    ) -> FastMap<&'p str, Self> {
        let mut copies: FastMap<&str, Self> = FastMap::default();
        for it in split.iter().flatten().filter(|it| it.name.eq_ignore_ascii_case("v1")) {
            let name = it.rest.rsplit('/').next().unwrap_or(it.rest);
            if it.before == it.parent && !name_roles(name).contains(FileRole::Entry) {
                let copies = copies.entry(it.parent).or_default();
                copies.files += 1;
                let is_beside = |path: &&str| path.strip_prefix(it.parent) == Some(it.rest);
                copies.current += usize::from(paths.iter().any(is_beside));
            }
        }
        copies
    }
}

/// Splits a path at the last folder with a version.
fn split(path: &str) -> Option<Versioned<'_>> {
    let mut end = path.rfind('/')?;
    loop {
        let start = path[..end].rfind('/').map_or(0, |at| at + 1);
        let folder = &path[start..end];
        if let Some((prefix, version)) = version_in(folder) {
            return Some(Versioned {
                before: &path[..start + prefix],
                name: &folder[prefix..],
                version,
                parent: &path[..start],
                rest: &path[end + 1..],
            });
        }
        end = start.checked_sub(1)?;
    }
}

/// The version at the end of a folder's name, and where it begins.
fn version_in(folder: &str) -> Option<(usize, Version)> {
    let begin = folder.rfind(['-', '_', '.']).map_or(0, |at| at + 1);
    let name = &folder[begin..];
    let (major, rest) = number(name.strip_prefix(['v', 'V'])?)?;
    let stages = [("alpha", Stage::Alpha), ("beta", Stage::Beta), ("rc", Stage::Candidate)];
    let stage = stages.iter().find_map(|(name, stage)| Some((*stage, rest.strip_prefix(name)?)));
    let (stage, rest) = stage.unwrap_or((Stage::Stable, rest));
    let (number, rest) = number(rest).unwrap_or((0, rest));
    rest.is_empty().then_some((begin, Version { major, stage, number }))
}

/// The number that a text begins with, of at most four digits, and the rest.
fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number = text[..digits].parse().ok().filter(|_| digits <= 4)?;
    Some((number, &text[digits..]))
}

impl Version {
    fn supersedes(self, other: Self) -> bool {
        self > other && self.stage >= other.stage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_older_versions_are_found_beside_newer_ones() {
        for (paths, expected) in [
            (&["zod/v3/types.ts", "zod/v4/core/schemas.ts"][..], &["v3", ""][..]),
            (
                &["apps/v1beta1/types.go", "apps/v1/types.go", "apps/v1beta2/types.go"],
                &["v1beta1", "", "v1beta2"],
            ),
            // A version that is not finished replaces no finished one.
            (&["batch/v2alpha1/job.go", "batch/v1/job.go"], &["", ""]),
            (&["batch/v2alpha1/job.go", "batch/v1alpha3/job.go"], &["", "v1alpha3"]),
            (&["api-v1/users.py", "api-v2/orders.py", "web-v1/a.py"], &["v1", "", ""]),
            // Versions of different things.
            (&["apps/v1/types.go", "batch/v2/types.go"], &["", ""]),
            (&["v1/a.py", "v10/a.py", "v9/a.py"], &["v1", "", "v9"]),
            (&["value/a.py", "vendor/a.py", "v/a.py", "v2x/a.py"], &["", "", "", ""]),
            (&["v1.py", "v2.py"], &["", ""]),
        ] {
            check(paths, expected);
        }
    }

    #[test]
    fn the_first_version_is_older_than_the_same_files_beside_it() {
        for (paths, expected) in [
            (
                &["p/v1/main.py", "p/main.py", "p/v1/fields.py", "p/fields.py", "p/root.py"][..],
                &["v1", "", "v1", "", ""][..],
            ),
            // An interface with files of its own.
            (
                &["api/v1/a.py", "api/a.py", "api/v1/b.py", "api/b.py", "api/v1/users.py"],
                &["", "", "", "", ""],
            ),
            (&["api/v1/main.py", "api/main.py"], &["", ""]),
            (&["v1/__init__.py", "__init__.py", "v1/a/__init__.py", "a/__init__.py"], &[""; 4]),
            // A later version in a folder is newer.
            (&["echo/v4/a.go", "echo/a.go", "echo/v4/b.go", "echo/b.go"], &[""; 4]),
            (&["lib-v1/a.go", "a.go", "lib-v1/b.go", "b.go"], &[""; 4]),
        ] {
            check(paths, expected);
        }
    }

    fn check(paths: &[&str], expected: &[&str]) {
        let found: Vec<&str> =
            superseded(paths).into_iter().map(Option::unwrap_or_default).collect();
        assert_eq!(found, expected, "{paths:?}");
    }
}
