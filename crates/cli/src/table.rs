//! Aligned columns.

/// Cells are padded to at most this width.
const MAX_WIDTH: usize = 200;

/// Aligns rows under their headings. Columns whose heading starts with `>` are
/// aligned to the right.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let names: Vec<&str> = headings.iter().map(|name| name.trim_start_matches('>')).collect();
    let mut columns = Columns::new(&names);
    for (at, heading) in headings.iter().enumerate() {
        columns.align_right(at, heading.starts_with('>'));
        rows.iter().for_each(|row| columns.widen(at, &row[at]));
    }
    let mut text = columns.line(&names);
    rows.iter().for_each(|row| text.push_str(&columns.line(row)));
    text
}

/// The columns of a table whose rows may arrive one by one.
pub(crate) struct Columns {
    widths: Vec<usize>,
    right: Vec<bool>,
}

impl Columns {
    pub(crate) fn new(names: &[impl AsRef<str>]) -> Self {
        let widths = names.iter().map(|name| width(name.as_ref())).collect();
        Self { widths, right: vec![false; names.len()] }
    }

    /// Widens a column to fit a cell.
    pub(crate) fn widen(&mut self, column: usize, cell: &str) {
        self.widths[column] = self.widths[column].max(width(cell));
    }

    /// Sets whether a column is aligned to the right.
    pub(crate) fn align_right(&mut self, column: usize, right: bool) {
        self.right[column] = right;
    }

    /// Formats a row.
    pub(crate) fn line(&self, cells: &[impl AsRef<str>]) -> String {
        let mut text = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let cell = cell.as_ref();
            let padding = " ".repeat(self.widths[column].saturating_sub(width(cell)));
            let gap = if column == 0 { "" } else { "  " };
            text.push_str(gap);
            match self.right[column] {
                true => text.extend([padding.as_str(), cell]),
                false => text.extend([cell, padding.as_str()]),
            }
        }
        text.trim_end().to_owned() + "\n"
    }
}

fn width(text: &str) -> usize {
    text.chars().take(MAX_WIDTH).count()
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
