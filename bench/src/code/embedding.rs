//! The embedding model compared with model2vec, with the same table and texts.

use anyhow::Result;
use serde::Deserialize;

use super::Repository;
use super::parts::ParseCosts;
use crate::figure::{Figure, Goal};
use crate::table::Row;

const GOAL: f64 = 5.0;

#[derive(Deserialize)]
struct Embedded {
    cpu_seconds: f64,
    texts: u64,
}

impl Repository {
    pub(super) fn embed(&mut self, parts: &ParseCosts) -> Result<Row> {
        let (model, texts) = (self.semble.model().to_owned(), self.texts());
        eprintln!("bench:   {}: model2vec", self.name);
        let theirs: Option<Embedded> =
            self.semble.phase("embed", [model.as_os_str(), texts.as_os_str()]);
        let ours = parts.count as f64 / parts.vectors;
        let rival = theirs.map(|theirs| theirs.texts as f64 / theirs.cpu_seconds);
        let goal = rival.map(|rival| Goal::at_least(ours, GOAL * rival, "5 times model2vec's"));
        Ok(Row {
            name: "chunks embedded, CPU, vs. model2vec".to_owned(),
            ours: Figure::Rate(ours),
            rival: rival.map(Figure::Rate).into(),
            goal,
        })
    }
}
