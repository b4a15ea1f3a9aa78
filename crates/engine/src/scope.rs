//! Which part of the index a question about code covers: roots and paths.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use isolith_folder::git::{Worktree, repository_between, repository_top, without_dots};
use isolith_protocol::{CodeScope, LocateRoots, RootPlace};
use isolith_source::Language;
use isolith_types::{Code, Failure, Hint};

use crate::code::{CodeFilter, nothing_indexed};
use crate::index::{Root, RootFolder, root_around};
use crate::open::Engine;
use crate::within::real_path;

impl Engine {
    /// The roots as they were last seen, and what a filter selects in them.
    ///
    /// # Errors
    /// `not_found` if nothing is indexed here, `bad_input` for an invalid filter.
    pub(crate) async fn scope_of(
        &self,
        filter: &CodeFilter,
    ) -> Result<(Vec<RootPlace>, CodeScope), Failure> {
        let seen = self.inner.seen_roots.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Ok(scope) = self.code_scope(filter, &seen) {
            return Ok((seen, scope));
        }
        let roots = self.ask(LocateRoots).await?;
        let scope = self.code_scope(filter, &roots)?;
        self.remember_roots(&roots);
        Ok((roots, scope))
    }

    /// Remembers the roots, so that the next question need not look for them.
    pub(crate) fn remember_roots(&self, roots: &[RootPlace]) {
        let mut seen = self.inner.seen_roots.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = roots.to_vec();
    }

    /// What a filter selects.
    pub(crate) fn code_scope(
        &self,
        filter: &CodeFilter,
        places: &[RootPlace],
    ) -> Result<CodeScope, Failure> {
        let allowed = self.allowed_roots(places);
        if allowed.is_empty() {
            return Err(nothing_indexed());
        }
        let Paths { mut roots, globs } = Paths::of(filter, &allowed)?;
        if !filter.roots.is_empty() {
            let given: Vec<u64> = filter
                .roots
                .iter()
                .map(|folder| root_in(folder, &allowed))
                .collect::<Result<_, _>>()?;
            roots.get_or_insert_with(|| given.clone()).retain(|root| given.contains(root));
        } else if roots.is_none() && !filter.all_roots {
            let answering = self.answering(&allowed)?;
            roots = answering.map(|roots| roots.into_iter().map(|root| root.id).collect());
        }
        let mut roots = roots.unwrap_or_else(|| allowed.iter().map(|root| root.id).collect());
        // Without a list, rows need not be selected before the search.
        if places.iter().all(|place| roots.contains(&place.id)) {
            roots.clear();
        }
        let languages = filter.languages.iter().map(|name| language(name));
        Ok(CodeScope {
            roots,
            languages: languages.collect::<Result<_, _>>()?,
            paths: globs,
            kinds: filter.kinds.clone(),
            symbol: filter.symbol.clone(),
            tests: filter.tests,
            since: filter.since,
            except: None,
        })
    }

    /// The roots that questions are answered for, as far as their files may be read.
    ///
    /// # Errors
    /// `not_found` in a repository or worktree that is not indexed; any error of a read.
    pub async fn roots_here(&self) -> Result<Vec<Root>, Failure> {
        let folders = self.root_folders().await?;
        let answering = self.answering(&folders)?;
        let answers =
            |id: u64| answering.as_ref().is_none_or(|roots| roots.iter().any(|root| root.id == id));
        let mut roots = self.roots().await?;
        roots.retain(|it| answers(it.id) && self.allows_folder(&it.folder));
        Ok(roots)
    }

    /// Those of these roots that answer questions; `None` if all do.
    ///
    /// # Errors
    /// As [`Engine::root_here`].
    pub(crate) fn answering<'r>(
        &self,
        roots: &'r [RootFolder],
    ) -> Result<Option<Vec<&'r RootFolder>>, Failure> {
        let Some(here) = self.root_here(roots)? else { return Ok(None) };
        let also = &self.inner.options.also;
        let answers = |it: &&RootFolder| {
            it.id == here.id || also.iter().any(|folder| it.folder.starts_with(folder))
        };
        let answering: Vec<&RootFolder> = roots.iter().filter(answers).collect();
        Ok(Some(answering).filter(|answering| answering.len() < roots.len()))
    }

    /// The root that questions are asked in. `None` if that is outside of all roots: then all
    /// of them answer.
    ///
    /// # Errors
    /// `not_found` in a repository or worktree that is not indexed: the roots around it, or
    /// the main checkout, have other code.
    fn root_here<'r>(&self, roots: &'r [RootFolder]) -> Result<Option<&'r RootFolder>, Failure> {
        let Some(here) = self.inner.options.here.as_deref() else { return Ok(None) };
        if let Some(root) = root_around(roots, here) {
            return match repository_between(&root.folder, here) {
                Some(top) => Err(not_indexed_here(top)),
                None => Ok(Some(root)),
            };
        }
        let Some(top) = repository_top(here) else { return Ok(None) };
        let home = self.home();
        let main = Worktree::of(top).and_then(|it| Some(it.main_checkout()?.to_owned()));
        let is_ours = here.starts_with(&home) || main.is_some_and(|main| main.starts_with(&home));
        match is_ours && !roots.iter().any(|root| root.folder.starts_with(top)) {
            true => Err(not_indexed_here(top)),
            false => Ok(None),
        }
    }
}

fn not_indexed_here(top: &Path) -> Failure {
    let folder = top.display().to_string();
    let message = format!("{folder} is a repository or worktree of its own, and is not indexed");
    Failure::new(Code::NotFound, message).with_hint(Hint::IndexRepository { folder })
}

fn language(name: &str) -> Result<String, Failure> {
    Language::from_name(name).map(|it| it.name().to_owned()).ok_or_else(|| {
        Failure::new(Code::BadInput, format!("unknown language {name:?}"))
            .with_hint("docs/languages.md lists them: rust, python, typescript, …")
    })
}

fn root_in(folder: &Path, roots: &[RootFolder]) -> Result<u64, Failure> {
    let real = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    roots.iter().find(|root| root.folder == real).map(|root| root.id).ok_or_else(|| {
        let known: Vec<String> =
            roots.iter().map(|root| root.folder.display().to_string()).collect();
        Failure::new(Code::NotFound, format!("{} is not an indexed folder", folder.display()))
            .with_hint(format!("roots of this store: {}", known.join(", ")))
    })
}

/// The path patterns of a filter, relative to roots.
#[derive(Debug, Default, PartialEq, Eq)]
struct Paths {
    /// The roots that the patterns name.
    roots: Option<Vec<u64>>,
    /// Patterns relative to a root; empty if all files of these roots are meant.
    globs: Vec<String>,
}

impl Paths {
    fn of(filter: &CodeFilter, roots: &[RootFolder]) -> Result<Self, Failure> {
        let mut all = Self::default();
        let mut whole = false;
        for pattern in &filter.paths {
            let Some((folder, glob)) = on_disk(pattern, filter.base.as_deref()) else {
                all.globs.push(pattern.clone());
                continue;
            };
            let (found, glob) = place(&folder, &glob, roots).ok_or_else(|| {
                let message = format!("{} is not in an indexed folder", folder.display());
                Failure::new(Code::NotFound, message).with_hint(
                    "patterns are relative to the root, such as src/**; those that begin with \
                     / or . are paths on the disk",
                )
            })?;
            if let [root] = found[..]
                && let Some(root) = roots.iter().find(|it| it.id == root)
                && let Some(top) = repository_between(&root.folder, &folder)
            {
                return Err(not_indexed_here(top));
            }
            if *all.roots.get_or_insert_with(|| found.clone()) != found {
                let message = "the paths are in different roots";
                return Err(Failure::new(Code::BadInput, message).with_hint("name one at a time"));
            }
            whole |= glob.is_none();
            all.globs.extend(glob);
        }
        if whole {
            all.globs.clear();
        }
        Ok(all)
    }
}

/// The folder that a pattern begins with, without links, and the rest of it; `None` for a
/// pattern that is relative to the root.
fn on_disk(pattern: &str, base: Option<&Path>) -> Option<(PathBuf, String)> {
    let first = pattern.split('/').next().unwrap_or_default();
    let base = match first {
        "" => Path::new("/"),
        "." | ".." => base?,
        _ => return None,
    };
    let is_plain = |name: &&str| !name.contains(['*', '?', '[', '{', '\\']);
    let names: Vec<&str> = pattern.split('/').collect();
    let plain = names.iter().take_while(|name| is_plain(name)).count();
    let folder = without_dots(&base.join(names[..plain].join("/").trim_start_matches('/')));
    let folder = real_path(&folder).map_or(folder, |(real, _)| real);
    Some((folder, names[plain..].join("/")))
}

/// The roots that a folder is in, or that are in it, and the pattern there; no pattern if all
/// of their files are meant.
fn place(folder: &Path, glob: &str, roots: &[RootFolder]) -> Option<(Vec<u64>, Option<String>)> {
    if let Some(root) = root_around(roots, folder) {
        let below = folder.strip_prefix(&root.folder).ok()?.to_str()?;
        let parts = [literal(below), glob.to_owned()];
        let parts: Vec<&str> =
            parts.iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
        // A leading slash binds the pattern to the root.
        let pattern = (!parts.is_empty()).then(|| format!("/{}", parts.join("/")));
        return Some((vec![root.id], pattern));
    }
    let inner = roots.iter().filter(|root| root.folder.starts_with(folder));
    let inner: Vec<u64> = inner.map(|root| root.id).collect();
    (!inner.is_empty() && glob.is_empty()).then_some((inner, None))
}

/// A pattern that matches exactly this path.
fn literal(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for letter in path.chars() {
        match letter {
            '*' | '?' | '[' | ']' | '{' | '}' => pattern.extend(['[', letter, ']']),
            '\\' => pattern.push_str("\\\\"),
            letter => pattern.push(letter),
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots() -> Vec<RootFolder> {
        let root =
            |(id, folder): (u64, &str)| RootFolder { id, folder: folder.into(), finished: true };
        [(1, "/p/a"), (2, "/p/a/wt/x"), (3, "/p/b")].map(root).into()
    }

    fn paths(patterns: &[&str], base: &str) -> Result<(Option<Vec<u64>>, Vec<String>), Code> {
        let filter = CodeFilter {
            paths: patterns.iter().map(|it| (*it).to_owned()).collect(),
            base: Some(base.into()),
            ..CodeFilter::default()
        };
        let found = Paths::of(&filter, &roots()).map_err(|failure| failure.code)?;
        Ok((found.roots, found.globs))
    }

    #[test]
    fn patterns_become_relative_to_their_root() {
        let one = |root: u64, glob: &str| Ok((Some(vec![root]), vec![glob.to_owned()]));
        let whole = |roots: &[u64]| Ok((Some(roots.to_vec()), vec![]));
        let table = [
            ("src/**", Ok((None, vec!["src/**".to_owned()]))),
            ("*.rs", Ok((None, vec!["*.rs".to_owned()]))),
            (".hidden/x", Ok((None, vec![".hidden/x".to_owned()]))),
            (".", one(1, "/src/[[]id[]]")),
            ("./", one(1, "/src/[[]id[]]")),
            ("./*.rs", one(1, "/src/[[]id[]]/*.rs")),
            ("..", one(1, "/src")),
            ("../lib/**/*.py", one(1, "/src/lib/**/*.py")),
            ("../..", whole(&[1])),
            ("../../..", whole(&[1, 2, 3])),
            ("/p/b", whole(&[3])),
            ("/p/b/", whole(&[3])),
            ("/p/b/c", one(3, "/c")),
            ("/p/a/wt/x/c/*", one(2, "/c/*")),
            ("/p/*", Err(Code::NotFound)),
            ("/elsewhere", Err(Code::NotFound)),
        ];
        for (pattern, expected) in table {
            assert_eq!(paths(&[pattern], "/p/a/src/[id]"), expected, "{pattern}");
        }
    }

    #[test]
    fn several_patterns_must_be_in_one_root() {
        assert_eq!(paths(&["/p/b/c", "/p/a/c"], "/"), Err(Code::BadInput));
        let both = (Some(vec![3]), vec!["/c".to_owned(), "*.rs".to_owned()]);
        assert_eq!(paths(&["/p/b/c", "*.rs"], "/"), Ok(both));
        assert_eq!(paths(&["/p/b/c", "/p/b"], "/"), Ok((Some(vec![3]), vec![])));
    }
}
