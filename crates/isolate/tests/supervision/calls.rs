//! Calls, from the caller's point of view.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use isolate::misbehave::Fault;
use isolate::{
    BreakerPolicy, CallError, CallOptions, DeathClass, End, Hooks, MemoryQuarantine, PoolSettings,
    Quarantine,
};
use libtest_mimic::Trial;

use crate::support::*;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("call::payloads_of_any_size_round_trip", payloads),
        trial("call::progress_reaches_the_caller", progress),
        trial("call::parts_arrive_before_the_reply", parts),
        trial("call::a_panicking_listener_is_harmless", panicking_listener),
        trial("call::dropping_the_future_cancels_the_job", cancel),
        trial("call::a_cancelled_job_that_does_not_return_is_killed", ignored_cancel),
        trial("call::oversized_requests_and_replies_are_rejected", too_large),
        trial("call::a_full_queue_rejects_jobs", queue_full),
        trial("call::waiting_for_a_worker_times_out", queue_timeout),
        trial("call::a_timeout_is_retried_only_if_idempotent", timeouts),
        trial("call::cpu_time_is_limited_until_the_end_of_the_job", cpu_limit),
        trial("call::a_job_that_kills_twice_is_quarantined", poison),
        trial("call::a_batch_is_bisected", batch),
        trial("call::the_breaker_opens_and_closes_again", breaker),
    ]
}

async fn payloads() {
    let pool = pool(PoolSettings::default());
    for size in [0, 100, 65_000, 66_000, 5_000_000] {
        let bytes: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
        let answer = call(&pool, Request::Echo(bytes.clone().into())).await.unwrap();
        assert_eq!(answer.reply, Reply::Bulk(bytes.into()));
    }
}

async fn progress() {
    let pool = pool(PoolSettings::default());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let listener = {
        let seen = seen.clone();
        Arc::new(move |progress: isolate::Progress| seen.lock().unwrap().push(progress))
    };
    let options = CallOptions { on_progress: Some(listener), ..CallOptions::default() };
    pool.call(&Request::Count(20), options).await.unwrap();
    let seen = seen.lock().unwrap();
    assert!((2..20).contains(&seen.len()), "expected some of them, not all: {}", seen.len());
    assert!(seen.is_sorted_by_key(|progress| progress.done));
    assert_eq!(seen[0].total, Some(20));
    assert_eq!(seen[0].note, "at 1");
}

async fn parts() {
    let pool = pool(PoolSettings::default());
    for size in [0, 10, 200_000, 3_000_000] {
        let taken = Arc::new(Mutex::new((0, Vec::new())));
        let listener = {
            let taken = taken.clone();
            Arc::new(move |attempt: u32, part: bytes::Bytes| {
                let mut taken = taken.lock().unwrap();
                if taken.0 != attempt {
                    *taken = (attempt, Vec::new());
                }
                taken.1.extend_from_slice(&part);
            })
        };
        let options = CallOptions { on_part: Some(listener), ..CallOptions::default() };
        let answer = pool.call(&Request::Parts(size), options).await.unwrap();
        assert_eq!(answer.deaths.len(), 1);
        assert_eq!(answer.reply, Reply::Number(size as u64));
        let expected: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
        assert!(taken.lock().unwrap().1 == expected, "{size}: everything once and in order");
    }
    // Without a listener they are dropped.
    assert_eq!(call(&pool, Request::Parts(100_000)).await.unwrap().reply, Reply::Number(100_000));
}

async fn panicking_listener() {
    let pool = pool(PoolSettings::default());
    let listener = Arc::new(|_: isolate::Progress| panic!("on purpose"));
    let options = CallOptions { on_progress: Some(listener), ..CallOptions::default() };
    let answer = pool.call(&Request::Count(2), options).await.unwrap();
    assert!(answer.deaths.is_empty());
    pool.drain(Duration::from_secs(5)).await;
}

async fn cancel() {
    let scratch = tempfile::tempdir().unwrap();
    let note = scratch.path().join("note");
    let pool = pool(PoolSettings::default());
    let pid = echo(&pool).await.worker_pid;
    let job = Request::AwaitCancel(note.to_str().unwrap().to_owned());
    let abandoned = tokio::time::timeout(Duration::from_millis(100), call(&pool, job)).await;
    assert!(abandoned.is_err());
    // The same worker becomes free once the job has seen the flag.
    assert_eq!(echo(&pool).await.worker_pid, pid);
    assert_eq!(std::fs::read_to_string(note).unwrap(), "cancelled");
}

async fn ignored_cancel() {
    let (reports, hooks) = reporting();
    let settings = PoolSettings { stop_grace: Duration::from_millis(50), ..restless() };
    let pool = pool_with(&Settings::default(), settings, hooks);
    let pid = echo(&pool).await.worker_pid;
    let job = Request::Sleep(Duration::from_secs(1000));
    let abandoned = tokio::time::timeout(Duration::from_millis(10), call(&pool, job)).await;
    assert!(abandoned.is_err());
    assert_ne!(echo(&pool).await.worker_pid, pid, "another worker replaced it");
    eventually("the worker is gone", || !is_alive(pid));
    assert!(reports.take().is_empty(), "cancelling is not a death");
}

async fn too_large() {
    let settings =
        PoolSettings { max_request_bytes: 100_000, max_reply_bytes: 100_000, ..restless() };
    let pool = pool(settings);
    let pid = echo(&pool).await.worker_pid;
    let error = call(&pool, Request::Echo(vec![0; 200_000].into())).await.unwrap_err();
    assert!(matches!(error, CallError::RequestTooLarge { limit: 100_000, .. }), "{error}");
    let error = call(&pool, Request::Produce(200_000)).await.unwrap_err();
    assert!(matches!(error, CallError::Unanswerable(_)), "{error}");
    assert_eq!(echo(&pool).await.worker_pid, pid, "neither kills the worker");
}

async fn queue_full() {
    let pool = pool(PoolSettings { queue_bound: 2, ..PoolSettings::default() });
    echo(&pool).await;
    let sleep = || {
        let pool = pool.clone();
        tokio::spawn(async move { call(&pool, Request::Sleep(Duration::from_millis(300))).await })
    };
    let calls = [sleep(), sleep(), sleep(), sleep(), sleep()];
    let mut refused = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(_) => {}
            Err(CallError::QueueFull { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(refused, 2, "one runs, two wait");
}

async fn queue_timeout() {
    let pool = pool(PoolSettings::default());
    echo(&pool).await;
    let running = {
        let pool = pool.clone();
        tokio::spawn(async move { call(&pool, Request::Sleep(Duration::from_secs(1))).await })
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    let options =
        CallOptions { patience: Some(Duration::from_millis(50)), ..CallOptions::default() };
    let error = pool.call(&Request::Descriptors, options).await.unwrap_err();
    assert!(matches!(error, CallError::QueueTimeout { .. }), "{error}");
    running.await.unwrap().unwrap();
}

async fn timeouts() {
    let pool = pool(PoolSettings { spares: 1, ..restless() });
    let deadline = Some(Duration::from_millis(500));
    let once = CallOptions { deadline, ..CallOptions::default() };
    let error = pool.call(&Request::Fail(Fault::Hang, 1), once.clone()).await.unwrap_err();
    let CallError::Died { class: DeathClass::Timeout, deaths, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(deaths.len(), 1);
    let again = CallOptions { idempotent: true, ..once };
    let answer = pool.call(&Request::Fail(Fault::Hang, 2), again).await.unwrap();
    assert_eq!(answer.deaths.len(), 1);
}

async fn cpu_limit() {
    let pool = pool(PoolSettings { spares: 0, ..restless() });
    let (short, long) = (Duration::from_millis(1), Duration::from_secs(60));
    call(&pool, Request::Spin(short, true)).await.unwrap();
    // The same worker, which may use more than the limit of the job before.
    call(&pool, Request::Spin(Duration::from_millis(2_500), false)).await.unwrap();
    let once = CallOptions { strikes: Some(1), ..CallOptions::default() };
    let error = pool.call(&Request::Spin(long, true), once).await.unwrap_err();
    let (CallError::Died { deaths, .. } | CallError::Poisoned { deaths, .. }) = error else {
        panic!("{error}");
    };
    assert_eq!(deaths[0].class, DeathClass::Crash);
    assert_eq!(deaths[0].end, End::Signaled(libc::SIGXCPU));
}

async fn poison() {
    let quarantine = Arc::new(MemoryQuarantine::default());
    let hooks = Hooks { quarantine: quarantine.clone(), ..Hooks::default() };
    let old = PoolSettings { spares: 1, build: Some("old".into()), ..restless() };
    let pool = pool_with(&Settings::default(), old, hooks.clone());
    let deadly = || Request::Unlucky(vec![13]);

    let error = call(&pool, deadly()).await.unwrap_err();
    let CallError::Poisoned { class: DeathClass::Crash, deaths, input_hash, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(deaths.len(), 2);
    assert_eq!(quarantine.list()[0].input_hash, input_hash);

    let before = pool.snapshot().restarts;
    let error = call(&pool, deadly()).await.unwrap_err();
    assert!(matches!(error, CallError::Quarantined { .. }), "{error}");
    assert_eq!(pool.snapshot().restarts, before, "the job was not tried");
    call(&pool, Request::Unlucky(vec![12])).await.unwrap();

    let new = PoolSettings { spares: 1, build: Some("new".into()), ..restless() };
    let pool = pool_with(&Settings::default(), new, hooks);
    let error = call(&pool, deadly()).await.unwrap_err();
    assert!(matches!(error, CallError::Poisoned { .. }), "another build tries again: {error}");
}

async fn batch() {
    let pool = pool(PoolSettings { spares: 1, ..PoolSettings::default() });
    let mut items: Vec<u64> = (100..164).collect();
    items[17] = 13;
    items[50] = 13;
    let request = |items: &[u64]| Request::Unlucky(items.to_vec());
    let parts = pool.call_batch(&items, request, CallOptions::default()).await;
    let mut answered = Vec::new();
    let mut culprits = Vec::new();
    for part in parts {
        match part.outcome {
            Ok(answer) => {
                let Reply::Numbers(numbers) = answer.reply else { panic!() };
                assert_eq!(numbers, items[part.items.clone()]);
                answered.extend(part.items);
            }
            // The second 13 is the same input, quarantined by then.
            Err(CallError::Poisoned { .. } | CallError::Quarantined { .. }) => {
                culprits.extend(part.items);
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(culprits, [17, 50]);
    assert_eq!(answered.len(), 62);
    // Deaths while bisecting do not count against the pool, so the breaker stays closed.
    echo(&pool).await;

    let again = pool.call_batch(&items, request, CallOptions::default()).await;
    assert_eq!(again.len(), 5, "quarantined items are skipped: three runs and two refusals");
}

async fn breaker() {
    let breaker =
        BreakerPolicy { cooldown: Duration::from_millis(200), ..BreakerPolicy::default() };
    let pool = pool(PoolSettings { breaker, spares: 1, ..restless() });
    let mut refused = None;
    for number in 0..20 {
        match call(&pool, Request::Fail(Fault::Abort, number)).await {
            Ok(answer) => assert_eq!(answer.deaths.len(), 1),
            Err(error) => {
                refused = Some((number, error));
                break;
            }
        }
    }
    let (number, error) = refused.unwrap();
    assert_eq!(number, 5, "the sixth death opens it");
    let CallError::BreakerOpen { retry_after, last, .. } = error else { panic!("{error}") };
    assert!(last.contains("SIGABRT"), "{last}");
    tokio::time::sleep(retry_after + Duration::from_millis(20)).await;
    for _ in 0..3 {
        echo(&pool).await;
    }
}
