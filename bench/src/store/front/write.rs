//! Small durable writes, one record at a time.

use std::io::BufRead;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use isolith_engine::{Engine, Life, PutMode, Records};
use isolith_types::{Failure, Metadata, Record};

use super::{COLLECTION, SMALL_DIMENSION, open};
use crate::store::report::WriteTimes;

/// What a front prints after it has written its first record, and what it then waits for.
pub(crate) const READY: &str = "ready";
pub(crate) const GO: &str = "go";

pub(super) async fn write(
    store: &Path,
    front: usize,
    callers: usize,
    seconds: f64,
) -> Result<WriteTimes> {
    let engine = open(store, Life::Server)?;
    put(&engine, format!("first-{front}"), front).await?;
    println!("{READY}");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    ensure!(line.trim() == GO, "expected {GO:?}, got {line:?}");

    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let writers: Vec<_> = (0..callers)
        .map(|caller| tokio::spawn(write_until(end, engine.clone(), front, caller)))
        .collect();
    let mut waits = WriteTimes::default();
    for writer in writers {
        waits.add(writer.await?);
    }
    engine.close().await;
    Ok(waits)
}

async fn write_until(end: Instant, engine: Engine, front: usize, caller: usize) -> WriteTimes {
    let mut waits = WriteTimes::default();
    for number in 0.. {
        let started = Instant::now();
        if started >= end {
            break;
        }
        if let Err(failure) = put(&engine, format!("{front}-{caller}-{number}"), front).await {
            waits.failures += 1;
            waits.why.get_or_insert_with(|| failure.to_string());
        }
        waits.nanoseconds.push(started.elapsed().as_nanos() as u64);
    }
    waits
}

async fn put(engine: &Engine, id: String, front: usize) -> Result<(), Failure> {
    let metadata = Metadata::parse(&format!(r#"{{"writer":{front}}}"#));
    let record = Record {
        id,
        document: Some("a small record".to_owned()),
        metadata: metadata.expect("an object with a number is metadata"),
        vector: vec![1.0; SMALL_DIMENSION as usize],
    };
    let records = Records::from_records(vec![record]);
    engine.put(COLLECTION, records, PutMode::Upsert, None).await.map(|_| ())
}
