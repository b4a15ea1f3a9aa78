//! Runs the examples.

use isolate::DeathClass;
use libtest_mimic::Trial;

use crate::restart::count_letters;
use crate::support::*;

pub fn trials() -> Vec<Trial> {
    vec![trial("example::a_crashed_worker_is_replaced", restart)]
}

async fn restart() {
    let folder = tempfile::tempdir().unwrap();
    let answer = count_letters(&folder.path().join("mark"), "crash").await.unwrap();
    assert_eq!(answer.reply, 5);
    let classes: Vec<DeathClass> = answer.deaths.iter().map(|death| death.class).collect();
    assert_eq!(classes, [DeathClass::Crash]);
    assert_ne!(answer.deaths[0].pid, answer.worker_pid);
}
