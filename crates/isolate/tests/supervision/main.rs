//! Tests with real processes and real faults. Each trial creates its own pool; fronts that are
//! killed or stopped are separate processes.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, unreachable_pub)]

mod calls;
mod descriptors;
mod examples;
mod faults;
mod fronts;
mod hostile;
mod lifecycle;
// Its `main` is not used here.
#[allow(dead_code)]
#[path = "../../examples/restart.rs"]
mod restart;
mod sandbox;
mod support;

use libtest_mimic::{Arguments, Trial};

fn main() {
    isolate::worker_main(&[
        isolate::role::<support::Tester>(),
        isolate::role::<support::Stubborn>(),
        isolate::role::<sandbox::Confined>(),
        isolate::role::<descriptors::DescriptorReader>(),
        isolate::role::<restart::Flaky>(),
    ]);
    if let Some(scenario) = fronts::requested() {
        fronts::run(&scenario);
        return;
    }
    let trials: Vec<Trial> = [
        calls::trials(),
        descriptors::trials(),
        examples::trials(),
        faults::trials(),
        fronts::trials(),
        hostile::trials(),
        lifecycle::trials(),
        sandbox::trials(),
    ]
    .into_iter()
    .flatten()
    .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
