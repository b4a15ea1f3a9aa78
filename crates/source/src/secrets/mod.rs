//! Detects files that hold secrets: private keys, passwords, access tokens.
//!
//! [`is_secret_name`] recognises files by name. [`Secrets`] scans text: an automaton finds
//! the fixed part of every rule in one pass, and each match is verified against a bounded
//! number of surrounding bytes, so that the cost is linear in the text. A [`Finding`]
//! contains no part of the secret.
//!
//! The rules describe formats that services publish and that scanners such as gitleaks
//! know. They prefer to miss an unusual secret over a false alarm on ordinary code, because
//! a finding excludes the whole file from the index.

mod judge;
mod names;
mod shapes;
mod tokens;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

pub use names::is_secret_name;
use shapes::{SHAPES, Shape};
use tokens::{TOKENS, Token};

/// Prefix of [`Finding::problem`].
const PROBLEM: &str = "secret: ";

/// Findings on a line with this marker are ignored, as in gitleaks.
const ALLOWED: &[u8] = b"gitleaks:allow";

/// How far to look for the marker on either side of a match, in bytes.
const LINE: usize = 1 << 10;

/// Maximum number of costly checks per text, to bound the cost of repeated keywords.
const COSTLY_CHECKS: usize = 32;

/// A secret found in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// The name of the rule.
    pub rule: &'static str,
    /// The line, from 1.
    pub line: usize,
}

impl Finding {
    /// The text that the index records for the file. Equal findings with equal treatment
    /// give equal texts.
    pub fn problem(&self, included: bool) -> String {
        let treated = if included { "included" } else { "left out" };
        format!("{PROBLEM}{} on line {}, {treated}", self.rule, self.line)
    }
}

/// Whether a problem recorded in the index came from [`Finding::problem`].
pub fn is_secret_problem(problem: &str) -> bool {
    problem.starts_with(PROBLEM)
}

/// The compiled rules.
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
    /// Builds the automaton, which takes a few milliseconds.
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
        // A DFA is the fastest form, and small with so few keywords.
        let automaton = AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(&keys);
        // Building fails only if the automaton would need gigabytes; tests build it.
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

/// Whether the line carries the marker that suppresses findings.
fn is_allowed(bytes: &[u8], at: usize) -> bool {
    let before = bytes[..at].iter().rev().take(LINE).take_while(|it| **it != b'\n').count();
    let after = bytes[at..].iter().take(LINE).take_while(|it| **it != b'\n').count();
    bytes[at - before..at + after].windows(ALLOWED.len()).any(|it| it == ALLOWED)
}

#[cfg(test)]
mod tests;
