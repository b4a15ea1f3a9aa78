//! Answers of the engine while a store is changed, folded, damaged or truncated by a power loss,
//! with real workers that really crash.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, unreachable_pub)]

mod damage;
mod drawers;
mod faults;
mod folding;
mod graph;
mod hybrid;
mod indexing;
mod log;
mod memory;
mod pages;
mod power;
mod replaced;
mod support;

use libtest_mimic::{Arguments, Trial};

fn main() {
    isolate::worker_main(&isolith_engine::worker_roles());
    let programs = support::Programs::prepare(&[faults::ALL, graph::ALL, indexing::ALL].concat());
    let trials: Vec<Trial> = [
        damage::trials(),
        drawers::trials(&programs),
        faults::trials(&programs),
        folding::trials(),
        graph::trials(&programs),
        hybrid::trials(),
        indexing::trials(&programs),
        log::trials(),
        memory::trials(),
        pages::trials(),
        power::trials(),
        replaced::trials(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    drop(programs);
    conclusion.exit();
}
