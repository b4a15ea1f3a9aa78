//! `isolith collection query`.

use std::fmt::Write as _;

use isolith_engine::{Engine, Hits, Like};
use isolith_types::{Failure, Filter, Hit, Metadata};
use serde::Serialize;
use serde_json::{Value, json};

use super::{excerpt, plain};
use crate::table::table;

/// What to search for.
pub(crate) enum Question {
    Vector(Vec<f32>),
    Keywords(String),
    Text(String),
    Hybrid(Like, String),
}

/// The hits as JSON and as text.
pub(super) async fn query(
    engine: &Engine,
    name: &str,
    question: Question,
    limit: u32,
    filter: Option<Filter>,
) -> Result<(Value, String), Failure> {
    let Hits { hits, degraded } = match question {
        Question::Vector(vector) => engine.nearest(name, &vector, limit, filter).await?,
        Question::Keywords(words) => engine.keywords(name, &words, limit, filter).await?,
        Question::Text(text) => engine.meaning(name, &text, limit, filter).await?,
        Question::Hybrid(like, words) => engine.hybrid(name, &like, &words, limit, filter).await?,
    };
    let text = show_hits(&hits, degraded.as_deref());
    let hits: Vec<ShownHit> = hits.iter().map(ShownHit::of).collect();
    Ok((json!({ "hits": hits, "degraded": degraded }), text))
}

/// A hit as it is shown.
#[derive(Serialize)]
struct ShownHit<'a> {
    id: &'a str,
    distance: Option<f64>,
    score: Option<f64>,
    fused: Option<f64>,
    why: &'a [String],
    document: Option<&'a str>,
    metadata: &'a Metadata,
}

impl<'a> ShownHit<'a> {
    fn of(hit: &'a Hit) -> Self {
        Self {
            id: &hit.id,
            distance: hit.distance.map(plain),
            score: hit.score.map(plain),
            fused: hit.fused.map(plain),
            why: &hit.why,
            document: hit.document.as_deref(),
            metadata: &hit.metadata,
        }
    }
}

fn show_hits(hits: &[Hit], degraded: Option<&str>) -> String {
    let mut text = match hits {
        [] => "no results\n".to_owned(),
        [first, ..] if first.fused.is_some() => {
            let row = |hit: &Hit| {
                let why = hit.why.join(", ");
                vec![number(hit.fused), hit.id.clone(), why, excerpt(hit.document.as_deref())]
            };
            let rows: Vec<Vec<String>> = hits.iter().map(row).collect();
            table(&[">FUSED", "ID", "WHY", "DOCUMENT"], &rows)
        }
        [first, ..] => {
            let row = |hit: &Hit| {
                let measure = number(hit.distance.or(hit.score));
                vec![measure, hit.id.clone(), excerpt(hit.document.as_deref())]
            };
            let rows: Vec<Vec<String>> = hits.iter().map(row).collect();
            let measure = if first.distance.is_some() { ">DISTANCE" } else { ">SCORE" };
            table(&[measure, "ID", "DOCUMENT"], &rows)
        }
    };
    if let Some(degraded) = degraded {
        let _ = writeln!(text, "degraded: {degraded}");
    }
    text
}

fn number(value: Option<f32>) -> String {
    value.map(|value| format!("{value:.4}")).unwrap_or_default()
}
