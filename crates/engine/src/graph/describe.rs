//! Symbols and how they were reached, in words.

use std::fmt::Write as _;

use super::row::Symbol;
use super::walk::Reached;

/// Which end of its edge a symbol was found at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// It calls.
    Before,
    /// It is called.
    After,
}

impl Symbol {
    /// On a line: where it is, and what it is called.
    pub fn told(&self) -> String {
        match self.is_file() {
            true => self.path.clone(),
            false => format!("{}  {}", self.place(), self.qualified_name),
        }
    }

    /// Where it is: a path, and a line if it has one.
    pub fn place(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", self.path),
            None => self.path.clone(),
        }
    }
}

impl Reached {
    /// On a line: where it is, what it is called, and how it was reached.
    pub fn told(&self, side: Side) -> String {
        // A file in which an edge begins has no line but that of the edge.
        let place = match (self.symbol.is_file() && side == Side::Before, self.via_line) {
            (true, Some(line)) => format!("{}:{line}", self.symbol.path),
            _ => self.symbol.told(),
        };
        format!("{place}  ({})", self.how(side))
    }

    fn how(&self, side: Side) -> String {
        let (active, passive) = match self.kind.as_str() {
            "CALLS" => ("calls", "called"),
            "REFERENCES" => ("names", "named"),
            "INHERITS" => ("inherits", "inherited"),
            "IMPLEMENTS" => ("implements", "implemented"),
            "IMPORTS" => ("imports", "imported"),
            "TESTS" => ("tests", "tested"),
            other => (other, other),
        };
        let other = self.via.rsplit('#').next().unwrap_or(&self.via);
        let mut text = match side {
            Side::Before => format!("{active} {other}"),
            Side::After => format!("{passive} by {other}"),
        };
        if let Some(line) = self.via_line {
            let _ = write!(text, " at line {line}");
        }
        if self.depth > 1 {
            let _ = write!(text, ", depth {}", self.depth);
        }
        if self.certainty == "candidate" {
            text.push_str(", candidate");
        }
        text
    }
}
