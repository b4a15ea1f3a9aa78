//! A call into C that segfaults on demand, and a front that survives it.
//!
//! `cargo run -p isolate --example survive`

use std::error::Error;
use std::ffi::{CString, c_char};
use std::time::Duration;

use isolate::{
    CallError, CallOptions, Context, Hooks, InWorker, Pool, PoolSettings, Refusal, Role,
};
use serde::{Deserialize, Serialize};

/// Measures C strings, at any address it is given.
struct Strlen;

#[derive(Serialize, Deserialize)]
enum Request {
    /// The length of this text.
    Text(String),
    /// The length of the string at this address of the worker's memory.
    Address(u64),
}

impl Role for Strlen {
    const NAME: &'static str = "strlen";
    type Settings = ();
    type Request = Request;
    type Reply = Result<usize, String>;

    fn warm_up((): (), _token: InWorker) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn handle(&mut self, request: Request, _context: &Context<'_>) -> Self::Reply {
        match request {
            Request::Text(text) => {
                let text = CString::new(text).map_err(|error| error.to_string())?;
                Ok(strlen(text.as_ptr()))
            }
            Request::Address(address) => {
                let address = usize::try_from(address).map_err(|error| error.to_string())?;
                Ok(strlen(std::ptr::with_exposed_provenance(address)))
            }
        }
    }
}

#[allow(unsafe_code)]
fn strlen(text: *const c_char) -> usize {
    // SAFETY: sound for a text. For an address it is not, and that is the point:
    // the fault ends this worker process and nothing else.
    unsafe { libc::strlen(text) }
}

fn main() -> Result<(), Box<dyn Error>> {
    // Before anything else: this process may be a worker.
    isolate::worker_main(&[isolate::role::<Strlen>()]);

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let settings = PoolSettings { spares: 1, ..PoolSettings::default() };
        let pool: Pool<Strlen> = Pool::start(&(), settings, Hooks::default())?;

        println!("the front is process {}", std::process::id());
        ask(&pool, "a good call", Request::Text("hello".into())).await;
        ask(&pool, "a bad address", Request::Address(16)).await;
        ask(&pool, "the same bad address again", Request::Address(16)).await;
        ask(&pool, "the next good call", Request::Text("still here".into())).await;

        pool.drain(Duration::from_secs(5)).await;
        Ok(())
    })
}

/// Makes a call and prints the result.
async fn ask(pool: &Pool<Strlen>, what: &str, request: Request) {
    println!("\n{what}");
    match pool.call(&request, CallOptions::default()).await {
        Ok(answer) => println!("  {:?} from worker {}", answer.reply, answer.worker_pid),
        Err(error) => {
            println!("  {}: {error}", error.code());
            if let CallError::Poisoned { deaths, .. } = &error {
                for death in deaths {
                    println!("  worker {} died: {}, {}", death.pid, death.class, death.end);
                }
            }
        }
    }
}
