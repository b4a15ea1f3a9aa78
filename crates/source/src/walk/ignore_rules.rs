//! Ignore rules with git's semantics, within limits.
//!
//! Ignore files are untrusted input. One that is too large or has too many patterns is
//! skipped and reported.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde::{Deserialize, Serialize};

use super::{IGNORE_FILE, SkipReason, SkippedPath};
use isolith_folder::Folder;
use isolith_folder::git::repository_top;

/// Maximum size of an ignore file, in bytes.
pub const MAX_IGNORE_FILE_BYTES: u64 = 1 << 20;

/// Maximum number of patterns in one ignore file.
pub const MAX_PATTERNS: usize = 20_000;

/// Maximum number of patterns that apply to one folder, from all ignore files together.
const MAX_COMBINED_PATTERNS: usize = 60_000;

/// Maximum length of a pattern; no path is longer.
const MAX_PATTERN_BYTES: usize = 4_096;

/// Maximum number of folders above a root that are searched for rules.
const MAX_FOLDERS_ABOVE: usize = 64;

/// Kinds of rules, by precedence: the first kind with a match decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleKind {
    /// The user's and the project's settings
    Settings,
    /// `.isolithignore`
    Ours,
    /// `.ignore`
    Plain,
    /// `.gitignore`
    Git,
    /// `.git/info/exclude`
    Exclude,
}

/// Number of variants of [`RuleKind`].
const KINDS: usize = 5;

impl RuleKind {
    /// The kinds that are read from files, with the file's path relative to its folder.
    pub(super) const FILES: [(Self, &'static str); 4] = [
        (Self::Ours, IGNORE_FILE),
        (Self::Plain, ".ignore"),
        (Self::Git, ".gitignore"),
        (Self::Exclude, ".git/info/exclude"),
    ];
}

/// Rules of a folder above the root, or rules of the root that are stored outside of it. The
/// front reads them, because the walking worker can access only the root.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RulesAbove {
    kind: u8,
    /// Turns a path relative to the root into one relative to that folder.
    prefix: String,
    text: Vec<u8>,
}

impl RulesAbove {
    /// Patterns from settings, which take precedence over all other rules. `prefix` is the
    /// root's path relative to the folder that the patterns are relative to, with a trailing
    /// slash; empty if that folder is the root.
    pub fn of_settings(prefix: String, patterns: &[String]) -> Self {
        Self { kind: RuleKind::Settings as u8, prefix, text: patterns.join("\n").into_bytes() }
    }
}

/// Reads the rules that apply to a root but are stored outside of it, without parsing them.
/// Also returns those that cannot be used. `exclude` is git's own list for the repository of
/// a linked work tree. Rules for git apply only within the root's own repository.
pub fn rules_above(root: &Path, exclude: Option<&Path>) -> (Vec<RulesAbove>, Vec<SkippedPath>) {
    let (mut rules, mut left_out) = (Vec::new(), Vec::new());
    let mut take = |kind: RuleKind, prefix: &str, file: &Path| match read_rules(file) {
        Ok(Some(text)) => {
            rules.push(RulesAbove { kind: kind as u8, prefix: prefix.to_owned(), text });
        }
        Ok(None) => {}
        Err(why) => left_out.push(SkippedPath { path: file.to_string_lossy().into_owned(), why }),
    };
    if let Some(exclude) = exclude {
        take(RuleKind::Exclude, "", exclude);
    }
    let (mut prefix, repository) = (String::new(), repository_top(root));
    for pair in root.ancestors().zip(root.ancestors().skip(1)).take(MAX_FOLDERS_ABOVE) {
        let (folder, above) = pair;
        let Some(name) = folder.file_name().and_then(|name| name.to_str()) else { break };
        prefix = format!("{name}/{prefix}");
        let is_outside = repository.is_some_and(|top| !above.starts_with(top));
        for (kind, name) in RuleKind::FILES {
            if !(is_outside && matches!(kind, RuleKind::Git | RuleKind::Exclude)) {
                take(kind, &prefix, &above.join(name));
            }
        }
    }
    (rules, left_out)
}

/// Reads an ignore file; `None` if it does not exist.
fn read_rules(path: &Path) -> Result<Option<Vec<u8>>, SkipReason> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => bounded(&file.into()).map(Some),
        Err(_) => Ok(None),
    }
}

/// Reads a whole ignore file; fails if it is too large or not a regular file.
fn bounded(file: &File) -> Result<Vec<u8>, SkipReason> {
    let refuse = |reason: &dyn std::fmt::Display| SkipReason::Rules(reason.to_string());
    let metadata = file.metadata().map_err(|error| refuse(&error))?;
    if !metadata.is_file() {
        return Err(refuse(&"it is not a regular file"));
    }
    let too_large = || refuse(&format!("it is larger than {MAX_IGNORE_FILE_BYTES} bytes"));
    if metadata.len() > MAX_IGNORE_FILE_BYTES {
        return Err(too_large());
    }
    let mut text = Vec::new();
    file.take(MAX_IGNORE_FILE_BYTES + 1).read_to_end(&mut text).map_err(|error| refuse(&error))?;
    if text.len() as u64 > MAX_IGNORE_FILE_BYTES {
        return Err(too_large());
    }
    Ok(text)
}

/// All rules that apply in the walk's current folder.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// From the outermost folder to the innermost.
    scopes: Vec<Scope>,
    patterns: usize,
}

/// The rules of one folder.
#[derive(Debug)]
struct Scope {
    reach: Reach,
    /// Indexed by [`RuleKind`].
    matchers: [Option<Gitignore>; KINDS],
    /// Patterns that match the root itself. They do not count, because the user named the root.
    overruled: Vec<String>,
    patterns: usize,
}

#[derive(Debug)]
enum Reach {
    /// A folder in the root: the length in bytes of its path prefix.
    Below(usize),
    /// A folder above the root: what to prepend to a path.
    Above(String),
}

impl Rules {
    /// Starts with the rules of the folders above, which are listed innermost first.
    pub(super) fn above(rules: &[RulesAbove]) -> (Self, Vec<(String, SkipReason)>) {
        let (mut all, mut problems) = (Self::default(), Vec::new());
        for RulesAbove { kind, prefix, text } in rules.iter().rev() {
            let same = |scope: &Scope| matches!(&scope.reach, Reach::Above(it) if it == prefix);
            if !all.scopes.last().is_some_and(same) {
                all.scopes.push(Scope::new(Reach::Above(prefix.clone())));
            }
            if let Err(why) = all.add(usize::from(*kind), text) {
                problems.push((prefix.clone(), why));
            }
        }
        all.scopes.iter_mut().for_each(Scope::overrule);
        (all, problems)
    }

    /// Enters a folder, whose path prefix has this length in bytes, and loads its ignore
    /// files. The caller must call [`Self::leave`] even after an error.
    pub(super) fn enter(
        &mut self,
        root: &Folder,
        prefix: &Path,
        files: impl Iterator<Item = (RuleKind, &'static str)>,
    ) -> Vec<(&'static str, SkipReason)> {
        self.scopes.push(Scope::new(Reach::Below(prefix.as_os_str().len())));
        let mut problems = Vec::new();
        for (kind, name) in files {
            let text = match root.file_beneath(&prefix.join(name)) {
                Ok(file) => bounded(&file),
                Err(error) if is_gone(&error) => continue,
                Err(error) => Err(SkipReason::Rules(error.to_string())),
            };
            if let Err(why) = text.and_then(|text| self.add(kind as usize, &text)) {
                problems.push((name, why));
            }
        }
        problems
    }

    /// Leaves the folder that was entered last.
    pub(super) fn leave(&mut self) {
        if let Some(scope) = self.scopes.pop() {
            self.patterns -= scope.patterns;
        }
    }

    /// Whether a path, relative to the root, is ignored.
    pub(super) fn ignore(&self, path: &Path, is_folder: bool) -> bool {
        let mut verdicts = [None; KINDS];
        for scope in self.scopes.iter().rev().filter(|scope| scope.patterns > 0) {
            scope.judge(path, is_folder, &mut verdicts);
            if verdicts[0].is_some() {
                break;
            }
        }
        verdicts.into_iter().flatten().next().unwrap_or(false)
    }

    fn add(&mut self, kind: usize, text: &[u8]) -> Result<(), SkipReason> {
        let refuse = |reason: String| Err(SkipReason::Rules(reason));
        let lines = || {
            let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
            text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end)
        };
        let is_pattern = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"#");
        let patterns = lines().filter(is_pattern).count();
        if patterns > MAX_PATTERNS {
            return refuse(format!("it has {patterns} patterns, and {MAX_PATTERNS} are allowed"));
        }
        if self.patterns + patterns > MAX_COMBINED_PATTERNS {
            return refuse(format!(
                "with those of the folders above there are more than {MAX_COMBINED_PATTERNS} patterns"
            ));
        }
        let mut builder = GitignoreBuilder::new("");
        for line in lines().filter(|line| line.len() <= MAX_PATTERN_BYTES) {
            // An invalid pattern does not affect the others.
            if let Ok(line) = std::str::from_utf8(line) {
                let _ = builder.add_line(None, line);
            }
        }
        let matcher = match builder.build() {
            Ok(matcher) => matcher,
            Err(error) => return refuse(error.to_string()),
        };
        let Some(scope) = self.scopes.last_mut() else { return Ok(()) };
        if let Some(place) = scope.matchers.get_mut(kind).filter(|_| !matcher.is_empty()) {
            *place = Some(matcher);
            scope.patterns += patterns;
            self.patterns += patterns;
        }
        Ok(())
    }
}

impl Scope {
    fn new(reach: Reach) -> Self {
        Self { reach, matchers: [const { None }; KINDS], overruled: Vec::new(), patterns: 0 }
    }

    /// Finds the patterns that match the root or a folder on the way to it.
    fn overrule(&mut self) {
        let Reach::Above(prefix) = &self.reach else { return };
        let root = Path::new(prefix.trim_end_matches('/'));
        let folders = root.ancestors().filter(|it| !it.as_os_str().is_empty());
        for folder in folders {
            for matcher in self.matchers.iter().flatten() {
                if let Match::Ignore(pattern) = matcher.matched(folder, true) {
                    self.overruled.push(pattern.original().to_owned());
                }
            }
        }
    }

    fn overrules(&self, pattern: &str) -> bool {
        self.overruled.iter().any(|it| it == pattern)
    }

    /// Fills in verdicts for the kinds that no inner folder has decided on.
    fn judge(&self, path: &Path, is_folder: bool, verdicts: &mut [Option<bool>; KINDS]) {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let above;
        let path = match &self.reach {
            Reach::Below(length) => {
                let bytes = path.as_os_str().as_bytes();
                Path::new(OsStr::from_bytes(bytes.get(*length..).unwrap_or(bytes)))
            }
            Reach::Above(prefix) => {
                above = Path::new(prefix).join(path);
                &above
            }
        };
        for (matcher, verdict) in self.matchers.iter().zip(verdicts) {
            if let (Some(matcher), None) = (matcher, *verdict) {
                *verdict = match matcher.matched(path, is_folder) {
                    Match::None => None,
                    Match::Ignore(it) if self.overrules(it.original()) => None,
                    Match::Ignore(_) => Some(true),
                    Match::Whitelist(_) => Some(false),
                };
            }
        }
    }
}

fn is_gone(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}
