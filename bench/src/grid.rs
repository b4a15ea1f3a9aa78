//! Cells in columns.

/// Rows of cells, the first of which are the heads. Columns in `words` are aligned to
/// the left, all others hold figures.
pub(crate) fn lay_out(rows: &[Vec<String>], words: &[usize]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|cells| cells.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    let rule = "-".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1));
    let mut text = String::new();
    for (at, cells) in rows.iter().enumerate() {
        let mut line = String::new();
        for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            line += &match words.contains(&column) {
                true => format!("{cell:<width$}  "),
                false => format!("{cell:>width$}  "),
            };
        }
        text += line.trim_end();
        text.push('\n');
        if at == 0 {
            text += &rule;
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_figures_right() {
        let rows = [["what", "n", "verdict"], ["one thing", "100", "met"], ["x", "7", ""]];
        let rows = rows.map(|cells| cells.map(str::to_owned).to_vec());
        let expected = "\
what         n  verdict
-----------------------
one thing  100  met
x            7
";
        assert_eq!(lay_out(&rows, &[0, 2]), expected);
    }
}
