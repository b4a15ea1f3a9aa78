//! openCypher's compatibility kit, run on a graph in memory and on that of a store: what
//! passes, what is refused, what is wrong.
//!
//! `cargo xtask tck FEATURES`

mod feature;
mod judge;
mod subject;
mod value;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use judge::{Verdict, judge};
use subject::{MemorySubject, StoreGraph, Subject};

fn main() -> Result<()> {
    let features = std::env::args_os().nth(1).context("which folder of features?")?;
    let features = Path::new(&features);
    println!("in memory\n");
    let mut wrong = run(features, &|| Ok(Box::new(MemorySubject::default())))?;
    println!("\nin a store\n");
    wrong += run(features, &|| Ok(Box::new(StoreGraph::new()?)))?;
    ensure!(wrong == 0, "{wrong} scenarios have another answer");
    Ok(())
}

#[derive(Default)]
struct Tally {
    passed: usize,
    refused: usize,
    wrong: usize,
}

impl Tally {
    fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Passed => self.passed += 1,
            Verdict::Refused(_) => self.refused += 1,
            Verdict::Wrong(_) => self.wrong += 1,
        }
    }
}

/// Runs all scenarios of a folder, those of a file on one graph that is emptied in between,
/// and says which do not pass, and how many do, folder by folder. How many are wrong?
fn run(features: &Path, make: &dyn Fn() -> Result<Box<dyn Subject>>) -> Result<usize> {
    let mut files = Vec::new();
    collect(features, &mut files)?;
    files.sort();
    let graphs = features.parent().unwrap_or(features).join("graphs");
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let mut total = Tally::default();
    for file in &files {
        let content = std::fs::read_to_string(file)?;
        let folder = file.parent().and_then(|folder| folder.strip_prefix(features).ok());
        let folder = folder.map(|folder| folder.display().to_string()).unwrap_or_default();
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let mut graph = make()?;
        for scenario in feature::scenarios(&content) {
            let verdict = judge(&scenario, &graphs, graph.as_mut())?;
            graph.clear()?;
            tallies.entry(folder.clone()).or_default().add(&verdict);
            total.add(&verdict);
            match verdict {
                Verdict::Refused(why) => println!("refused  {stem} {}: {why}", scenario.name),
                Verdict::Wrong(why) => println!("WRONG    {stem} {}: {why}", scenario.name),
                Verdict::Passed => {}
            }
        }
    }
    print(&tallies, &total);
    Ok(total.wrong)
}

fn print(tallies: &BTreeMap<String, Tally>, total: &Tally) {
    println!("\n{:44} passed refused wrong", "folder");
    for (folder, tally) in tallies {
        println!("{folder:44} {:6} {:7} {:5}", tally.passed, tally.refused, tally.wrong);
    }
    let all = total.passed + total.refused + total.wrong;
    let rate = 100.0 * total.passed as f64 / all.max(1) as f64;
    let Tally { passed, refused, wrong } = total;
    println!("{:44} {passed:6} {refused:7} {wrong:5}  {rate:.2} % of {all}", "all");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("{} is not a folder of features", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "feature") {
            files.push(path);
        }
    }
    Ok(())
}
