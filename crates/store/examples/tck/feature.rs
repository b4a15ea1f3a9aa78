//! The compatibility kit's files: scenarios in Gherkin, of which it uses a small part.

/// A scenario, with the examples of its outline filled in.
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) steps: Vec<Step>,
}

/// A step with the text and the table below it.
#[derive(Clone, Default)]
pub(super) struct Step {
    pub(super) line: String,
    pub(super) text: String,
    pub(super) table: Vec<Vec<String>>,
}

/// The scenarios of a file.
pub(super) fn scenarios(content: &str) -> Vec<Scenario> {
    let mut result = Vec::new();
    let mut background = Vec::new();
    let mut block: Option<Block> = None;
    let mut lines = content.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') || trimmed.starts_with('@') {
            continue;
        }
        let title = ["Scenario Outline:", "Scenario:", "Background:"]
            .iter()
            .find_map(|keyword| trimmed.strip_prefix(keyword).map(|name| (*keyword, name.trim())));
        if let Some((keyword, name)) = title {
            finish(block.take(), &mut background, &mut result);
            let is_background = keyword == "Background:";
            block = Some(Block { name: name.to_owned(), is_background, ..Block::default() });
            continue;
        }
        let Some(block) = &mut block else { continue };
        if trimmed.starts_with("Examples:") {
            block.examples.push(Vec::new());
        } else if trimmed.starts_with("\"\"\"") {
            let text: Vec<&str> =
                lines.by_ref().take_while(|line| !line.trim().starts_with("\"\"\"")).collect();
            if let Some(step) = block.steps.last_mut() {
                step.text = unindented(&text);
            }
        } else if trimmed.starts_with('|') {
            let cells = cells(trimmed);
            match block.examples.last_mut() {
                Some(examples) => examples.push(cells),
                None => {
                    if let Some(step) = block.steps.last_mut() {
                        step.table.push(cells);
                    }
                }
            }
        } else {
            let line = trimmed.split_once(' ').map_or("", |(_, rest)| rest).to_owned();
            block.steps.push(Step { line, ..Step::default() });
        }
    }
    finish(block, &mut background, &mut result);
    result
}

#[derive(Default)]
struct Block {
    name: String,
    is_background: bool,
    steps: Vec<Step>,
    examples: Vec<Vec<Vec<String>>>,
}

fn finish(block: Option<Block>, background: &mut Vec<Step>, result: &mut Vec<Scenario>) {
    let Some(block) = block else { return };
    if block.is_background {
        *background = block.steps;
        return;
    }
    let steps: Vec<Step> = background.iter().cloned().chain(block.steps).collect();
    if block.examples.is_empty() {
        result.push(Scenario { name: block.name, steps });
        return;
    }
    for table in &block.examples {
        let Some((header, rows)) = table.split_first() else { continue };
        for (number, row) in rows.iter().enumerate() {
            let fill = |text: &str| {
                header.iter().zip(row).fold(text.to_owned(), |text, (name, value)| {
                    text.replace(&format!("<{name}>"), value)
                })
            };
            let steps = steps.iter().map(|step| Step {
                line: fill(&step.line),
                text: fill(&step.text),
                table: step
                    .table
                    .iter()
                    .map(|row| row.iter().map(|cell| fill(cell)).collect())
                    .collect(),
            });
            let name = format!("{} (example {})", fill(&block.name), number + 1);
            result.push(Scenario { name, steps: steps.collect() });
        }
    }
}

fn unindented(lines: &[&str]) -> String {
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let least = lines.iter().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    let cut: Vec<&str> = lines.iter().map(|line| line.get(least..).unwrap_or("")).collect();
    cut.join("\n")
}

/// The cells of a row; `\|` is no border.
fn cells(line: &str) -> Vec<String> {
    let mut cells = Vec::new();
    let mut cell = String::new();
    let mut letters = line.trim().trim_start_matches('|').chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('|') => cell.push('|'),
                Some('\\') => cell.push('\\'),
                Some('n') => cell.push('\n'),
                Some(other) => {
                    cell.push('\\');
                    cell.push(other);
                }
                None => {}
            },
            '|' => cells.push(std::mem::take(&mut cell).trim().to_owned()),
            _ => cell.push(letter),
        }
    }
    cells
}
