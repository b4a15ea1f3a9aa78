//! Files and folders that the caller opened and sent with a job.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use isolate::misbehave::Fault;
use isolate::{
    CallError, CallOptions, Context, Hooks, InWorker, Pool, PoolSettings, Refusal, Role, Sandbox,
};
use libtest_mimic::Trial;
use serde::{Deserialize, Serialize};

use crate::support::*;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("descriptors::a_sealed_role_can_read_descriptors_it_was_given", read),
        trial("descriptors::a_retry_gets_them_again", retry),
        trial("descriptors::they_are_closed_after_the_job", closed),
        trial("descriptors::descriptors_do_not_affect_the_quarantine", quarantine),
        trial("descriptors::too_many_are_refused", too_many),
        trial("descriptors::they_arrive_with_a_job_in_shared_memory", long_request),
    ]
}

/// A role that cannot open any file itself.
pub struct DescriptorReader;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Task {
    /// Replies with the content of each descriptor. Crashes first while the attempt is below
    /// this number.
    Read { crashes: u32 },
    /// The same, with bytes that make the request long.
    ReadWith(isolate::Bulk),
    /// Replies with the number of open descriptors.
    Open,
}

impl Role for DescriptorReader {
    const NAME: &'static str = "handed";
    type Settings = ();
    type Request = Task;
    type Reply = (Vec<String>, usize);

    fn warm_up((): (), _: InWorker) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn handle(&mut self, task: Task, context: &Context<'_>) -> Self::Reply {
        if matches!(task, Task::Read { crashes } if context.attempt() < crashes) {
            Fault::Segfault.commit(context);
        }
        let texts = context.descriptors().iter().map(|descriptor| {
            let mut text = String::new();
            let mut file = File::from(descriptor.try_clone().unwrap());
            file.read_to_string(&mut text).unwrap();
            text
        });
        let texts = texts.collect();
        // Descriptors are allocated from the lowest number, so this one is the count.
        let probe = rustix::pipe::pipe().unwrap().0;
        let free = std::os::fd::AsRawFd::as_raw_fd(&probe);
        (texts, usize::try_from(free).unwrap())
    }

    fn sandbox((): &()) -> Sandbox {
        Sandbox::sealed()
    }
}

fn pool() -> Pool<DescriptorReader> {
    Pool::start(&(), restless(), Hooks::default()).unwrap()
}

fn open(texts: &[&str]) -> CallOptions {
    let folder = tempfile::tempdir().unwrap();
    let open = |(number, text): (usize, &&str)| {
        let path = folder.path().join(number.to_string());
        fs::write(&path, text).unwrap();
        Arc::new(OwnedFd::from(File::open(path).unwrap()))
    };
    let descriptors = texts.iter().enumerate().map(open).collect();
    CallOptions { descriptors, idempotent: true, ..CallOptions::default() }
}

async fn read() {
    let pool = pool();
    let answer = pool.call(&Task::Read { crashes: 0 }, open(&["one", "two"])).await.unwrap();
    assert_eq!(answer.reply.0, ["one", "two"]);
    let answer = pool.call(&Task::Read { crashes: 0 }, CallOptions::default()).await.unwrap();
    assert!(answer.reply.0.is_empty());
}

async fn retry() {
    let pool = pool();
    let answer = pool.call(&Task::Read { crashes: 1 }, open(&["again"])).await.unwrap();
    assert_eq!(answer.deaths.len(), 1);
    assert_eq!(answer.reply.0, ["again"]);
}

async fn closed() {
    let pool = pool();
    let before = pool.call(&Task::Open, CallOptions::default()).await.unwrap();
    for _ in 0..20 {
        pool.call(&Task::Read { crashes: 0 }, open(&["a", "b", "c"])).await.unwrap();
    }
    let after = pool.call(&Task::Open, CallOptions::default()).await.unwrap();
    assert_eq!(before.worker_pid, after.worker_pid);
    assert_eq!(before.reply.1, after.reply.1);
}

async fn quarantine() {
    let pool = pool();
    let deadly = Task::Read { crashes: u32::MAX };
    let error = pool.call(&deadly, open(&["first"])).await.unwrap_err();
    assert!(matches!(error, CallError::Poisoned { .. }), "{error}");
    let _other_numbers = open(&["x", "y", "z"]);
    let error = pool.call(&deadly, open(&["another", "file"])).await.unwrap_err();
    assert!(matches!(error, CallError::Quarantined { .. }), "{error}");
}

async fn too_many() {
    let pool = pool();
    let error = pool.call(&Task::Open, open(&["x"; 5])).await.unwrap_err();
    assert!(matches!(error, CallError::BadRequest(_)), "{error}");
    pool.call(&Task::Open, open(&["x"; 4])).await.unwrap();
    pool.drain(Duration::from_secs(5)).await;
}

async fn long_request() {
    let settings = PoolSettings { max_request_bytes: 8 << 20, ..restless() };
    let pool: Pool<DescriptorReader> = Pool::start(&(), settings, Hooks::default()).unwrap();
    let task = Task::ReadWith(vec![1; 1 << 20].into());
    let answer = pool.call(&task, open(&["beside it"])).await.unwrap();
    assert_eq!(answer.reply.0, ["beside it"]);
}
