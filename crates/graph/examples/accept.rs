//! Which queries of a collection are accepted, and why the others are refused.
//!
//! `cargo run -p isolith-graph --example accept FILE`, with a JSON list of queries.

use std::collections::BTreeMap;

use isolith_graph::prepare;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args_os().nth(1).ok_or("which file?")?;
    let queries: Vec<String> = serde_json::from_slice(&std::fs::read(file)?)?;
    let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for query in &queries {
        if let Err(error) = prepare(query) {
            let reason = error.to_string();
            let reason = reason.split(" (line").next().unwrap_or_default().to_owned();
            reasons.entry(reason).or_default().push(query);
        }
    }
    let refused: usize = reasons.values().map(Vec::len).sum();
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, queries)| std::cmp::Reverse(queries.len()));
    for (reason, queries) in reasons {
        println!("{:5} {reason}\n      {}", queries.len(), queries[0].replace('\n', " "));
    }
    let accepted = queries.len() - refused;
    let share = 100.0 * accepted as f64 / queries.len() as f64;
    println!("{accepted} of {} accepted ({share:.2} %)", queries.len());
    Ok(())
}
