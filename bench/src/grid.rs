//! Plain-text tables.

/// Formats rows of cells, the first of which is the header. Columns in `words` are left-aligned,
/// the others right-aligned.
pub(crate) fn align_columns(rows: &[Vec<String>], words: &[usize]) -> String {
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
    fn words_are_left_aligned_and_figures_right_aligned() {
        let rows = [["what", "n", "verdict"], ["one thing", "100", "met"], ["x", "7", ""]];
        let rows = rows.map(|cells| cells.map(str::to_owned).to_vec());
        let expected = "\
what         n  verdict
-----------------------
one thing  100  met
x            7
";
        assert_eq!(align_columns(&rows, &[0, 2]), expected);
    }
}
