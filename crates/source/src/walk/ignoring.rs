//! Ignore rules: which patterns hold where, as git has it, within bounds.
//!
//! Ignore files belong to whoever made the repository. One that is too large, or has too
//! many patterns, is not read, and that is said.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde::{Deserialize, Serialize};

use super::{IGNORE_FILE, LeftOut, Why};
use isolith_folder::Folder;

/// The largest ignore file.
pub const LARGEST_RULES: u64 = 1 << 20;

/// The most patterns of one ignore file.
pub const MOST_PATTERNS: usize = 20_000;

/// The most patterns that hold at the same place, of all ignore files together.
const MOST_PATTERNS_TOGETHER: usize = 60_000;

/// The longest pattern; no path is longer.
const LONGEST_PATTERN: usize = 4_096;

/// Folders above a root whose rules are looked for.
const MOST_FOLDERS_ABOVE: usize = 64;

/// The kinds of rules; the first that says something about a path decides.
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

/// How many kinds of rules there are.
const KINDS: usize = 5;

impl RuleKind {
    /// Those that are in files, with the file, relative to the folder they hold for.
    pub(super) const FILES: [(Self, &'static str); 4] = [
        (Self::Ours, IGNORE_FILE),
        (Self::Plain, ".ignore"),
        (Self::Git, ".gitignore"),
        (Self::Exclude, ".git/info/exclude"),
    ];
}

/// The rules of a folder above the root, or of the root if they are kept outside of it: the
/// front reads them, as the worker that walks sees nothing but the root.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RulesAbove {
    kind: u8,
    /// What stands before a path of the root in a path of that folder.
    prefix: String,
    text: Vec<u8>,
}

impl RulesAbove {
    /// Patterns of settings, which come before all other rules. `prefix` is the path of the
    /// root in the folder that they are relative to, with a slash at its end; empty if that is
    /// the root.
    pub fn of_settings(prefix: String, patterns: &[String]) -> Self {
        Self { kind: RuleKind::Settings as u8, prefix, text: patterns.join("\n").into_bytes() }
    }
}

/// Reads the rules that hold for a root and are kept outside of it, and says what of them
/// cannot be used. Nothing is parsed. `exclude` is git's own list for the repository of a
/// linked work tree.
pub fn rules_above(root: &Path, exclude: Option<&Path>) -> (Vec<RulesAbove>, Vec<LeftOut>) {
    let (mut rules, mut left_out) = (Vec::new(), Vec::new());
    let mut take = |kind: RuleKind, prefix: &str, file: &Path| match read_rules(file) {
        Ok(Some(text)) => {
            rules.push(RulesAbove { kind: kind as u8, prefix: prefix.to_owned(), text });
        }
        Ok(None) => {}
        Err(why) => left_out.push(LeftOut { path: file.to_string_lossy().into_owned(), why }),
    };
    if let Some(exclude) = exclude {
        take(RuleKind::Exclude, "", exclude);
    }
    let mut prefix = String::new();
    for pair in root.ancestors().zip(root.ancestors().skip(1)).take(MOST_FOLDERS_ABOVE) {
        let (folder, above) = pair;
        let Some(name) = folder.file_name().and_then(|name| name.to_str()) else { break };
        prefix = format!("{name}/{prefix}");
        for (kind, name) in RuleKind::FILES {
            take(kind, &prefix, &above.join(name));
        }
    }
    (rules, left_out)
}

/// The text of an ignore file; none if there is no file.
fn read_rules(path: &Path) -> Result<Option<Vec<u8>>, Why> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => bounded(&file.into()).map(Some),
        Err(_) => Ok(None),
    }
}

/// All of an ignore file, unless it is too large or no file.
fn bounded(file: &File) -> Result<Vec<u8>, Why> {
    let refuse = |reason: &dyn std::fmt::Display| Why::Rules(reason.to_string());
    let metadata = file.metadata().map_err(|error| refuse(&error))?;
    if !metadata.is_file() {
        return Err(refuse(&"it is not a regular file"));
    }
    let too_large = || refuse(&format!("it is larger than {LARGEST_RULES} bytes"));
    if metadata.len() > LARGEST_RULES {
        return Err(too_large());
    }
    let mut text = Vec::new();
    file.take(LARGEST_RULES + 1).read_to_end(&mut text).map_err(|error| refuse(&error))?;
    if text.len() as u64 > LARGEST_RULES {
        return Err(too_large());
    }
    Ok(text)
}

/// All rules that hold in the folder where a walk is.
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
    /// By kind.
    matchers: [Option<Gitignore>; KINDS],
    patterns: usize,
}

#[derive(Debug)]
enum Reach {
    /// For a folder of the root: how many bytes of a path lead to it.
    Below(usize),
    /// For a folder above: what stands before a path.
    Above(String),
}

impl Rules {
    /// Begins with the rules of the folders above, the innermost first.
    pub(super) fn above(rules: &[RulesAbove]) -> (Self, Vec<(String, Why)>) {
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
        (all, problems)
    }

    /// Enters a folder, which is this many bytes of a path away from the root, and takes the
    /// rules of these files in it. [`Self::leave`] must follow in any case.
    pub(super) fn enter(
        &mut self,
        root: &Folder,
        prefix: &Path,
        files: impl Iterator<Item = (RuleKind, &'static str)>,
    ) -> Vec<(&'static str, Why)> {
        self.scopes.push(Scope::new(Reach::Below(prefix.as_os_str().len())));
        let mut problems = Vec::new();
        for (kind, name) in files {
            let text = match root.file_beneath(&prefix.join(name)) {
                Ok(file) => bounded(&file),
                Err(error) if is_gone(&error) => continue,
                Err(error) => Err(Why::Rules(error.to_string())),
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

    /// Whether a path of the root is to be left out.
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

    fn add(&mut self, kind: usize, text: &[u8]) -> Result<(), Why> {
        let refuse = |reason: String| Err(Why::Rules(reason));
        let lines = || {
            let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
            text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end)
        };
        let is_pattern = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"#");
        let patterns = lines().filter(is_pattern).count();
        if patterns > MOST_PATTERNS {
            return refuse(format!("it has {patterns} patterns, and {MOST_PATTERNS} are allowed"));
        }
        if self.patterns + patterns > MOST_PATTERNS_TOGETHER {
            return refuse(format!(
                "with those of the folders above there are more than {MOST_PATTERNS_TOGETHER} patterns"
            ));
        }
        let mut builder = GitignoreBuilder::new("");
        for line in lines().filter(|line| line.len() <= LONGEST_PATTERN) {
            // A pattern that cannot be read costs no other.
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
        Self { reach, matchers: [const { None }; KINDS], patterns: 0 }
    }

    /// Says of each kind that nothing inner has decided on whether the path is left out.
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
