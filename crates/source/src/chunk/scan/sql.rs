use isolith_types::SymbolKind;

use super::blocks::Blocks;
use crate::chunk::lines::Lines;
use crate::chunk::outline::Outline;

/// What a file of SQL creates. A statement is recognised at the start of a line, whatever the
/// dialect; bodies of routines are passed over.
pub(super) fn outline(lines: &Lines<'_>) -> Outline {
    let mut blocks = Blocks::new(lines);
    let mut open: Option<Open> = None;
    let mut in_comment = false;
    for row in 0..lines.count() {
        let line = lines.row(row).trim_end();
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        if in_comment || (open.is_none() && bare.starts_with("/*")) {
            in_comment = !bare.contains("*/");
            blocks.comment(row);
            continue;
        }
        if open.is_none() && bare.starts_with("--") {
            blocks.comment(row);
            continue;
        }
        if open.as_ref().is_none_or(|open| open.may_end_before(indent))
            && let Some(created) = created(bare)
        {
            blocks.begin(row, [created.name], Some(created.symbol));
            open = Open::new(indent, created.symbol).after(bare, indent);
        } else if let Some(statement) = open.take() {
            blocks.extend(row);
            open = statement.after(bare, indent);
        } else if !bare.is_empty() {
            blocks.loose(row);
        }
    }
    blocks.finish()
}

/// A statement whose end has not come yet.
struct Open {
    indent: usize,
    is_routine: bool,
    body: Body,
}

enum Body {
    None,
    /// Up to this mark.
    Quoted(String),
    /// Up to `END`.
    Block,
}

impl Open {
    fn new(indent: usize, symbol: SymbolKind) -> Self {
        Self { indent, is_routine: symbol == SymbolKind::Function, body: Body::None }
    }

    /// Whether another statement with this indentation cannot be part of it.
    fn may_end_before(&self, indent: usize) -> bool {
        match self.body {
            Body::Quoted(_) => false,
            Body::Block => indent == 0 && self.indent == 0,
            Body::None => indent <= self.indent,
        }
    }

    /// What is open after a line of it.
    fn after(mut self, line: &str, indent: usize) -> Option<Self> {
        let mut rest = line;
        if let Body::Quoted(mark) = &self.body {
            let (_, after) = match rest.split_once(mark.as_str()) {
                Some(parts) => parts,
                None => return Some(self),
            };
            rest = after;
            self.body = Body::None;
        }
        if let Some((mark, after)) = dollar_quote(rest) {
            match after.split_once(mark) {
                Some((_, after)) => rest = after,
                None => {
                    self.body = Body::Quoted(mark.to_owned());
                    return Some(self);
                }
            }
        }
        let word = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        if let Body::Block = self.body {
            let ends = word.eq_ignore_ascii_case("end") && indent <= self.indent;
            return (!ends).then_some(self);
        }
        if self.is_routine && has_word(rest, "begin") {
            let ends = rest.trim_end_matches(';').trim_end();
            if ends.len() >= 3
                && ends.is_char_boundary(ends.len() - 3)
                && ends[ends.len() - 3..].eq_ignore_ascii_case("end")
            {
                return None;
            }
            self.body = Body::Block;
            return Some(self);
        }
        let ends = rest.ends_with(';') || is_delimiter(line);
        (!ends).then_some(self)
    }
}

/// A line that separates batches.
fn is_delimiter(line: &str) -> bool {
    line.eq_ignore_ascii_case("go") || matches!(line, "/" | "//" | "$$" | ";;")
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|it| it.eq_ignore_ascii_case(word))
}

/// The mark that opens a quoted body, `$$` or `$name$`, and what comes after it.
fn dollar_quote(text: &str) -> Option<(&str, &str)> {
    let start = text.find('$')?;
    let name = &text[start + 1..];
    let length = name.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
    let end = start + 1 + length + 1;
    name[length..].starts_with('$').then(|| (&text[start..end], &text[end..]))
}

struct Created<'t> {
    name: &'t str,
    symbol: SymbolKind,
}

/// What a statement creates: `CREATE OR REPLACE FUNCTION schema.name(…)`.
fn created(line: &str) -> Option<Created<'_>> {
    /// How many words may stand before the kind: `OR REPLACE GLOBAL TEMPORARY`, `DEFINER = a`.
    const MODIFIERS: usize = 8;
    let mut rest = after_word(line, "create")?;
    let symbol = (0..MODIFIERS).find_map(|_| {
        let (word, after) = next_word(rest)?;
        rest = after;
        kind(word).map(Some).or_else(|| is_end(word).then_some(None))
    })??;
    for word in ["view", "if", "not", "exists", "concurrently", "only", "body"] {
        rest = after_word(rest, word).unwrap_or(rest);
    }
    let name = last_name(rest)?;
    // `CREATE INDEX ON table` names none.
    (!name.eq_ignore_ascii_case("on")).then_some(Created { name, symbol })
}

/// What cannot come before a kind.
fn is_end(word: &str) -> bool {
    ["as", "on", "select", "user", "role", "extension", "policy", "cast", "operator", "rule"]
        .iter()
        .any(|end| word.eq_ignore_ascii_case(end))
}

fn kind(word: &str) -> Option<SymbolKind> {
    Some(match word.to_ascii_lowercase().as_str() {
        "table" | "view" => SymbolKind::Struct,
        "function" | "procedure" | "proc" | "trigger" | "aggregate" | "event" => {
            SymbolKind::Function
        }
        "type" | "domain" => SymbolKind::Type,
        "schema" | "database" | "package" | "keyspace" => SymbolKind::Module,
        "index" | "sequence" => SymbolKind::Constant,
        _ => return None,
    })
}

fn next_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(|c: char| c.is_whitespace() || c == '(').unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn after_word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let (first, rest) = next_word(text)?;
    first.eq_ignore_ascii_case(word).then_some(rest)
}

/// The last part of a name that may be quoted and have parts.
fn last_name(text: &str) -> Option<&str> {
    let mut rest = text.trim_start();
    loop {
        let close = match rest.chars().next()? {
            quote @ ('"' | '`' | '\'') => Some(quote),
            '[' => Some(']'),
            _ => None,
        };
        let (name, after) = match close {
            Some(close) => rest[1..].split_once(close)?,
            None => {
                let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '#' | '@');
                rest.split_at(rest.find(|c| !word(c)).unwrap_or(rest.len()))
            }
        };
        match after.strip_prefix('.') {
            Some(after) if !after.is_empty() => rest = after,
            _ => return (!name.is_empty()).then_some(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_dialects_are_found() {
        use SymbolKind::{Constant, Function, Module, Struct, Type};
        let table = [
            ("CREATE TABLE IF NOT EXISTS app.\"user\" (", Some(("user", Struct))),
            ("create table `a`.`b` (", Some(("b", Struct))),
            ("CREATE TABLE [dbo].[Order Details](", Some(("Order Details", Struct))),
            ("CREATE OR REPLACE MATERIALIZED VIEW v AS", Some(("v", Struct))),
            ("CREATE UNIQUE INDEX CONCURRENTLY i ON t (a)", Some(("i", Constant))),
            ("CREATE INDEX ON t (a)", None),
            ("CREATE DEFINER=`a`@`%` PROCEDURE p()", Some(("p", Function))),
            ("CREATE OR ALTER PROC dbo.p @a int AS", Some(("p", Function))),
            ("CREATE TYPE mood AS ENUM ('a')", Some(("mood", Type))),
            ("CREATE SCHEMA s;", Some(("s", Module))),
            ("CREATE USER u", None),
            ("CREATE EXTENSION IF NOT EXISTS x WITH SCHEMA y;", None),
            ("CREATED table x", None),
            ("CREATE", None),
            ("CREATE TABLE \"", None),
        ];
        for (line, expected) in table {
            let found = created(line).map(|it| (it.name, it.symbol));
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn bodies_are_part_of_their_routines() {
        let text = "-- Adds.\nCREATE FUNCTION f() RETURNS int AS $x$\nBEGIN\n  CREATE TABLE t (a int);\nEND;\n\
                    $x$ LANGUAGE plpgsql;\n\nCREATE PROCEDURE p\nAS\nBEGIN\n  IF 1\n  BEGIN\n    EXEC q;\n  END\n\
                    END\nGO\nCREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END;\n\
                    CREATE TABLE a (\n  b int\n);\nINSERT INTO a VALUES (1);\nCREATE VIEW v AS\n  SELECT 1;\n";
        let outline = outline(&Lines::of(text));
        let found: Vec<_> = outline
            .definitions
            .iter()
            .map(|it| (it.name.as_str(), text[it.extent.clone()].lines().last().unwrap()))
            .collect();
        let expected = [
            ("f", "$x$ LANGUAGE plpgsql;"),
            ("p", "END"),
            ("t", "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END;"),
            ("a", ");"),
            ("v", "  SELECT 1;"),
        ];
        assert_eq!(found, expected);
        assert_eq!(&text[outline.definitions[0].doc.clone()], "-- Adds.\n");
    }
}
