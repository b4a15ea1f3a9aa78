//! Real processes, real faults. Each trial makes its own pool; fronts that are to
//! be killed or stopped are processes of their own.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, unreachable_pub)]

mod calls;
mod descriptors;
mod faults;
mod fronts;
mod hostile;
mod lifecycle;
mod sandbox;
mod support;

use libtest_mimic::{Arguments, Trial};

fn main() {
    isolate::worker_main(&[
        isolate::role::<support::Tester>(),
        isolate::role::<support::Stubborn>(),
        isolate::role::<sandbox::Confined>(),
        isolate::role::<descriptors::Handed>(),
    ]);
    if let Some(scenario) = fronts::requested() {
        fronts::run(&scenario);
        return;
    }
    let trials: Vec<Trial> = [
        calls::trials(),
        descriptors::trials(),
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
