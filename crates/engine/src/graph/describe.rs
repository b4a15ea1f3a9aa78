//! Describes symbols, and how they were reached, in one line each.

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
    /// Its location and qualified name; for a file, its path.
    pub fn describe(&self) -> String {
        match self.is_file() {
            true => self.path.clone(),
            false => format!("{}  {}", self.place(), self.qualified_name),
        }
    }

    /// Its path, with the line if it has one.
    pub fn place(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", self.path),
            None => self.path.clone(),
        }
    }
}

impl Reached {
    /// Its location, its qualified name and the edge that led to it.
    pub fn describe(&self, side: Side) -> String {
        // A file has no line of its own; the edge that starts in it has one.
        let place = match (self.symbol.is_file() && side == Side::Before, self.via_line) {
            (true, Some(line)) => format!("{}:{line}", self.symbol.path),
            _ => self.symbol.describe(),
        };
        format!("{place}  ({})", self.edge(side))
    }

    fn edge(&self, side: Side) -> String {
        let (active, passive) = match self.kind.as_str() {
            "CALLS" => ("calls", "called"),
            "REFERENCES" => ("references", "referenced"),
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
