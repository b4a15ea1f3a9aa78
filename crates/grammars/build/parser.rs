//! Takes a generated `parser.c` apart: its tables, and everything else.

use std::fmt::Write as _;

use crate::Failure;
use crate::tables::Table;

/// The large tables, all of them numbers without pointers. What is left of `parser.c` are the
/// lexer, names, and small tables.
const TABLES: [&str; 6] = [
    "ts_parse_table",
    "ts_small_parse_table",
    "ts_small_parse_table_map",
    "ts_parse_actions",
    "ts_lex_modes",
    "ts_primary_state_ids",
];

/// Where the tables end and the function begins that returns the language.
const LANGUAGE: &str = "\nTS_PUBLIC const TSLanguage *tree_sitter_";

/// A `parser.c`.
pub(crate) struct Parser<'t> {
    text: &'t str,
    /// In the order of the text.
    tables: Vec<Definition<'t>>,
}

/// The definition of a table.
struct Definition<'t> {
    name: &'static str,
    /// The type of an element.
    kind: &'t str,
    /// `[STATE_COUNT]`, or `[]`.
    dimensions: &'t str,
    /// In the text, with the semicolon.
    start: usize,
    end: usize,
}

impl<'t> Parser<'t> {
    pub(crate) fn read(text: &'t str) -> Result<Self, Failure> {
        let mut tables = TABLES
            .iter()
            .map(|name| definition(text, name).ok_or_else(|| format!("no table {name}").into()))
            .collect::<Result<Vec<_>, Failure>>()?;
        tables.sort_by_key(|table| table.start);
        if !text.contains(LANGUAGE) {
            return Err("no function that returns the language".into());
        }
        Ok(Self { text, tables })
    }

    /// A program that prints each table: the size of an element, the number of elements, the bytes.
    pub(crate) fn program(&self) -> String {
        let end = self.text.find(LANGUAGE).unwrap_or(self.text.len());
        let mut program = format!("#include <stdio.h>\n{}\nint main(void) {{\n", &self.text[..end]);
        for Definition { name, kind, .. } in &self.tables {
            let _ = writeln!(
                program,
                "printf(\"%zu %zu\\n\", sizeof({kind}), sizeof({name}) / sizeof({kind}));\n\
                 fwrite({name}, 1, sizeof({name}), stdout);"
            );
        }
        program + "return ferror(stdout);\n}\n"
    }

    /// The text with empty tables, and a function that tells their addresses and sizes.
    pub(crate) fn without_tables(&self, name: &str, tables: &[Table]) -> String {
        let mut text = String::new();
        let mut copied = 0;
        for (definition, table) in self.tables.iter().zip(tables) {
            let Definition { name, kind, dimensions, start, end } = definition;
            let dimensions = dimensions.replace("[]", &format!("[{}]", table.elements));
            text.push_str(&self.text[copied..*start]);
            let _ = writeln!(text, "static {kind} {name}{dimensions};");
            copied = *end;
        }
        text.push_str(&self.text[copied..]);
        let _ = writeln!(
            text,
            "\nvoid isolith_tables_{name}(void *starts[{0}], uint32_t sizes[{0}]) {{",
            TABLES.len()
        );
        for (index, Definition { name, .. }) in self.tables.iter().enumerate() {
            let _ = writeln!(text, "  starts[{index}] = {name}; sizes[{index}] = sizeof({name});");
        }
        text + "}\n"
    }
}

fn definition<'t>(text: &'t str, name: &'static str) -> Option<Definition<'t>> {
    let named = text.find(&format!(" {name}["))?;
    let start = text[..named].rfind('\n')? + 1;
    let kind = text[start..named].strip_prefix("static const ")?;
    let dimensions = named + 1 + name.len();
    let opening = dimensions + text[dimensions..].find(" = {")?;
    let end = opening + text[opening..].find("\n};")? + "\n};".len();
    Some(Definition { name, kind, dimensions: &text[dimensions..opening], start, end })
}
