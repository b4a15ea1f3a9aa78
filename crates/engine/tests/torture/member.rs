//! One of the processes that use the store: an engine with several lanes at the same time. It may
//! be killed at any moment; its successor continues.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use isolith_engine::{Engine, EngineOptions, Life, StorePlace};
use isolith_types::Failure;

use crate::arguments::MemberArguments;
use crate::content::SHELVES;
use crate::journal::{Entry, now};
use crate::lane::{Lane, Stuck};

/// Lanes of each process.
pub(crate) const LANES: u32 = 2;

/// The number of operations of a short-lived process.
const BRIEF_STEPS: u32 = 25;

/// Runs until the end, or for the operations of a short-lived process.
pub(crate) fn run(arguments: &MemberArguments) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("torture: cannot set up a member: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(live(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stuck) => ExitCode::FAILURE,
    }
}

/// Every fourth process is like a command: short-lived, without spare workers.
fn is_brief(member: u32) -> bool {
    member % 4 == 3
}

async fn live(arguments: &MemberArguments) -> Result<(), Stuck> {
    let mut lanes = Vec::new();
    for number in arguments.member * LANES..(arguments.member + 1) * LANES {
        let lane = Lane::open(&arguments.folder.join("journals"), number, arguments.seed);
        lanes.push(lane.map_err(|error| {
            eprintln!("torture: cannot open the journal of lane {number}: {error}");
            Stuck
        })?);
    }
    let brief = is_brief(arguments.member);
    let options = EngineOptions {
        life: if brief { Life::OneShot } else { Life::Server },
        readers: LANES as usize,
        ..EngineOptions::default()
    };
    let engine = match open(&arguments.folder, options) {
        Ok(engine) => engine,
        Err(failure) => return lanes[0].refused("opening the store", &failure),
    };
    let all_lanes = arguments.members * LANES;
    let mut running = tokio::task::JoinSet::new();
    for mut lane in lanes {
        let (engine, until) = (engine.clone(), arguments.until);
        running.spawn(async move {
            lane.resolve(&engine).await?;
            let mut steps = 0;
            while now() < until && !(brief && steps >= BRIEF_STEPS) {
                steps += 1;
                step(&mut lane, &engine, all_lanes).await?;
            }
            Ok(())
        });
    }
    let mut outcome = Ok(());
    while let Some(joined) = running.join_next().await {
        outcome = outcome.and(joined.unwrap_or(Err(Stuck)));
    }
    if brief {
        engine.settle().await;
    }
    engine.close().await;
    outcome
}

/// Opens the store.
pub(crate) fn open(folder: &Path, options: EngineOptions) -> Result<Engine, Failure> {
    Engine::open(&StorePlace::unchecked(folder.join("store")), options)
}

async fn step(lane: &mut Lane, engine: &Engine, lanes: u32) -> Result<(), Stuck> {
    match lane.random.u32(..100) {
        0..30 => lane.write(engine).await?,
        30..45 => {
            lane.write(engine).await?;
            lane.look_at_last(engine).await?;
        }
        45..68 => lane.look_at_own(engine).await?,
        68..92 => lane.look_around(engine, lanes).await?,
        92..94 => lane.repeat(engine).await?,
        94..96 => lane.provoke(engine).await?,
        96 => lane.walk_away(engine).await,
        97 => lane.scrap(engine).await?,
        _ => fold(lane, engine).await?,
    }
    // Leave processor time for others.
    tokio::time::sleep(Duration::from_millis(lane.random.u64(0..20))).await;
    Ok(())
}

async fn fold(lane: &mut Lane, engine: &Engine) -> Result<(), Stuck> {
    let name = SHELVES[lane.random.usize(..SHELVES.len())].name;
    let rebuild = lane.random.u32(..3) == 0;
    match engine.fold(name, rebuild, None).await {
        Ok(done) => lane.note(&Entry::Folded { swapped: done.generation.is_some() }),
        Err(failure) => lane.refused(&format!("fold of {name}"), &failure),
    }
}
