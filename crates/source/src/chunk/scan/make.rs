use isolith_types::SymbolKind;

use super::blocks::Blocks;
use crate::chunk::lines::Lines;
use crate::chunk::outline::Outline;

/// How many targets of one rule are listed.
const MOST_TARGETS: usize = 8;

/// The rules of a Makefile with their recipes, its variables, and what it defines as macros.
pub(super) fn outline(lines: &Lines<'_>) -> Outline {
    let mut blocks = Blocks::new(lines);
    let mut state = State::Outside;
    let mut continues = false;
    for row in 0..lines.count() {
        let line = lines.row(row).trim_end();
        let continued = std::mem::replace(&mut continues, line.ends_with('\\'));
        if state == State::Define {
            blocks.extend(row);
            if line.trim_start().starts_with("endef") {
                state = State::Outside;
            }
        } else if continued || line.starts_with('\t') {
            if state == State::Rule {
                blocks.extend(row);
            }
        } else if line.starts_with('#') {
            blocks.comment(row);
        } else if !line.is_empty() {
            state = statement(&mut blocks, row, line, state);
        }
    }
    blocks.finish()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Outside,
    Rule,
    Define,
}

fn statement(blocks: &mut Blocks<'_>, row: usize, line: &str, state: State) -> State {
    if let Some(name) = line.trim_start().strip_prefix("define ") {
        let name = name.trim_end_matches(['=', ':', '?', '+', ' ']).trim();
        blocks.begin(row, [name], Some(SymbolKind::Macro));
        return State::Define;
    }
    match parse(line) {
        Some(Statement::Rule(targets)) => {
            let names = targets.split_whitespace().filter(|target| is_named(target));
            let names: Vec<&str> = names.take(MOST_TARGETS).collect();
            if names.is_empty() {
                blocks.loose(row);
                return State::Outside;
            }
            blocks.begin(row, names, Some(SymbolKind::Function));
            State::Rule
        }
        Some(Statement::Variable(name)) => {
            blocks.line(row, name, SymbolKind::Constant);
            State::Outside
        }
        // A condition inside a recipe.
        None if state == State::Rule && is_condition(line) => {
            blocks.extend(row);
            State::Rule
        }
        None => {
            blocks.loose(row);
            State::Outside
        }
    }
}

enum Statement<'t> {
    Rule(&'t str),
    Variable(&'t str),
}

/// A line by its first `:` or `=` that is not in brackets.
fn parse(line: &str) -> Option<Statement<'_>> {
    let at = sign(line)?;
    let (left, right) = line.split_at(at);
    let assigns = right.starts_with('=') || right.trim_start_matches(':').starts_with('=');
    if assigns {
        let name = left.trim_end_matches(['?', '+', '!', ':', ' ', '\t']);
        let name = name.split_whitespace().last().filter(|name| is_named(name))?;
        return Some(Statement::Variable(name));
    }
    // `target: VARIABLE = value` is about another rule.
    let right = right.trim_start_matches([':', ' ', '\t']);
    let to_comment = right.split('#').next().unwrap_or_default();
    let before_recipe = to_comment.split(';').next().unwrap_or_default();
    (sign(before_recipe).is_none() && !left.trim().is_empty()).then_some(Statement::Rule(left))
}

fn sign(line: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'(' | b'{' => depth += 1,
            b')' | b'}' => depth = depth.saturating_sub(1),
            b'#' if depth == 0 => return None,
            b':' | b'=' if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

/// Names that are computed, and the special ones such as `.PHONY`, name nothing.
fn is_named(name: &str) -> bool {
    let special = name.strip_prefix('.').is_some_and(|rest| rest.starts_with(char::is_uppercase));
    !special && !name.contains('$') && name.contains(char::is_alphanumeric)
}

fn is_condition(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    matches!(word, "ifeq" | "ifneq" | "ifdef" | "ifndef" | "else" | "endif")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definitions(text: &str) -> Vec<(String, SymbolKind, &str)> {
        let outline = outline(&Lines::of(text));
        let all = outline.definitions.into_iter();
        all.map(|it| (it.name, it.symbol.unwrap(), text[it.extent].trim_end())).collect()
    }

    #[test]
    fn rules_variables_and_macros_are_found() {
        let text = "CC ?= gcc\nexport FLAGS := -O2 \\\n  -g\n\n.PHONY: all\n# Builds it.\nall: a.o | dir\n\t\
                    $(CC) -o $@\nifdef X\n\techo x: y\nendif\n\n%.o: %.c ; cc\n$(OBJ): x\n\tcc\n\
                    define run =\nx: y\nendef\nall: DEBUG = 1\nclean distclean::\n\trm\n";
        use SymbolKind::{Constant, Function, Macro};
        let rule = "all: a.o | dir\n\t$(CC) -o $@\nifdef X\n\techo x: y\nendif";
        let expected = [
            ("CC", Constant, "CC ?= gcc"),
            ("FLAGS", Constant, "export FLAGS := -O2 \\"),
            ("all", Function, rule),
            ("%.o", Function, "%.o: %.c ; cc"),
            ("run", Macro, "define run =\nx: y\nendef"),
            ("clean", Function, "clean distclean::\n\trm"),
            ("distclean", Function, "clean distclean::\n\trm"),
        ];
        let found = definitions(text);
        let found: Vec<_> =
            found.iter().map(|(name, kind, text)| (&**name, *kind, *text)).collect();
        assert_eq!(found, expected);
    }
}
