//! Files that hold secrets: private keys, passwords, tokens of services.
//!
//! [`is_secret_name`] knows files that are secrets by their names. [`Secrets`] looks into
//! texts: an automaton finds the fixed part of every rule in one pass over the text, and
//! each place it finds is checked by a bounded look at the bytes around it, so that the
//! cost is linear in the text. Pure; nothing of a secret is in a [`Finding`].
//!
//! The rules describe the formats that services publish and that scanners such as gitleaks
//! know. A rule prefers to miss an odd secret to raising an alarm for ordinary code: what
//! is found is left out of the index as a whole file.

mod judge;
mod names;
mod shapes;
mod tokens;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

pub use names::is_secret_name;
use shapes::{SHAPES, Shape};
use tokens::{TOKENS, Token};

/// What [`Finding::problem`] begins with.
const PROBLEM: &str = "secret: ";

/// A line with this word in it is not looked at. gitleaks reads it in the same way.
const ALLOWED: &[u8] = b"gitleaks:allow";

/// How much of a line is looked at for that word.
const LINE: usize = 1 << 10;

/// How many costly checks a text gets: a secret is not hidden behind hundreds of others.
const COSTLY_CHECKS: usize = 32;

/// Where a text holds a secret, and of which kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// The name of the rule.
    pub rule: &'static str,
    /// The line, from 1.
    pub line: usize,
}

impl Finding {
    /// How the index records a file with such a secret; two findings of the same file that
    /// are treated alike have the same record.
    pub fn problem(&self, included: bool) -> String {
        let treated = if included { "included" } else { "left out" };
        format!("{PROBLEM}{} on line {}, {treated}", self.rule, self.line)
    }
}

/// Whether the index's record of a file came from [`Finding::problem`].
pub fn is_secret_problem(problem: &str) -> bool {
    problem.starts_with(PROBLEM)
}

/// The rules, ready for use.
pub struct Secrets {
    automaton: Option<AhoCorasick>,
    rules: Vec<Rule>,
}

#[derive(Clone, Copy)]
enum Rule {
    Token(&'static Token),
    Shape(&'static Shape),
}

impl Default for Secrets {
    fn default() -> Self {
        Self::new()
    }
}

impl Secrets {
    /// Builds the automaton: some milliseconds.
    pub fn new() -> Self {
        let mut keys: Vec<&str> = Vec::new();
        let mut rules = Vec::new();
        for token in TOKENS {
            keys.push(token.prefix);
            rules.push(Rule::Token(token));
        }
        for shape in SHAPES {
            for key in shape.keys {
                keys.push(key);
                rules.push(Rule::Shape(shape));
            }
        }
        // The fastest form, and with so few keys not a large one.
        let automaton = AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(&keys);
        // It fails only for a set of gigabytes; a test builds it.
        Self { automaton: automaton.ok(), rules }
    }

    /// The first secret in the text of a file.
    pub fn find(&self, path: &str, text: &str) -> Option<Finding> {
        let bytes = text.as_bytes();
        if names::is_key_name(path) && !shapes::is_public_key(bytes) {
            return Some(Finding { rule: "key-file", line: 1 });
        }
        let automaton = self.automaton.as_ref()?;
        let mut checks = 0;
        for found in automaton.find_overlapping_iter(bytes) {
            let rule = match self.rules[found.pattern().as_usize()] {
                Rule::Token(token) => token.matches(bytes, found.start()).then_some(token.rule),
                Rule::Shape(shape) => {
                    checks += usize::from(shape.costly);
                    let looked = !shape.costly || checks <= COSTLY_CHECKS;
                    (looked && (shape.check)(bytes, found.range())).then_some(shape.rule)
                }
            };
            if let Some(rule) = rule
                && !is_allowed(bytes, found.start())
            {
                let line = 1 + bytes[..found.start()].iter().filter(|it| **it == b'\n').count();
                return Some(Finding { rule, line });
            }
        }
        None
    }
}

/// Whether whoever wrote the line says that there is nothing to be found.
fn is_allowed(bytes: &[u8], at: usize) -> bool {
    let before = bytes[..at].iter().rev().take(LINE).take_while(|it| **it != b'\n').count();
    let after = bytes[at..].iter().take(LINE).take_while(|it| **it != b'\n').count();
    bytes[at - before..at + after].windows(ALLOWED.len()).any(|it| it == ALLOWED)
}

#[cfg(test)]
mod tests;
