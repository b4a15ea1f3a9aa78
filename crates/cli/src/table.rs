//! Columns for people.

/// Aligns rows under their headings. Columns whose heading starts with `>` are
/// aligned to the right.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let width = |text: &str| text.chars().count();
    let names: Vec<&str> = headings.iter().map(|name| name.trim_start_matches('>')).collect();
    let widths: Vec<usize> = (0..names.len())
        .map(|column| {
            let cells = rows.iter().map(|row| width(&row[column]));
            cells.chain([width(names[column])]).max().unwrap_or(0)
        })
        .collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::new();
        for (column, cell) in cells.enumerate() {
            let padding = " ".repeat(widths[column] - width(cell));
            let gap = if column == 0 { "" } else { "  " };
            text.push_str(gap);
            match headings[column].starts_with('>') {
                true => text.extend([padding.as_str(), cell]),
                false => text.extend([cell, padding.as_str()]),
            }
        }
        text.trim_end().to_owned() + "\n"
    };
    let mut text = line(&mut names.iter().copied());
    for row in rows {
        text.push_str(&line(&mut row.iter().map(String::as_str)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["a", "1"], ["longer", "1000"]].map(|row| row.map(str::to_owned).to_vec());
        let text = table(&["NAME", ">COUNT"], &rows);
        assert_eq!(text, "NAME    COUNT\na           1\nlonger   1000\n");
    }
}
