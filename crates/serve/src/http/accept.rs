//! Accepts connections and serves each until it ends or times out.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::connections::{Connection, Connections, Peer};
use super::gate::Gated;
use super::refused::Refused;
use super::unix::UnixSocket;

/// Maximum size of a head at the HTTP level. The gate's limit is lower, and explains the refusal.
const HEAD_BYTES: usize = 128 << 10;

/// How long to wait if no connection can be accepted, for lack of descriptors.
const REST: Duration = Duration::from_millis(100);

/// A client that takes longer to read a refusal is cut off.
const REFUSAL: Duration = Duration::from_secs(1);

/// A listening socket.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixSocket),
}

/// Serves connections until stopped and until busy ones have ended.
pub(crate) async fn serve(
    listener: &Listener,
    connections: &Connections,
    router: &Gated,
    stopping: &CancellationToken,
) {
    let open = watch::Sender::new(());
    loop {
        let next = accept(listener, connections);
        let next = tokio::select! {
            biased;
            () = stopping.cancelled() => break,
            next = next => next,
        };
        let Incoming { stream, connection, refused } = match next {
            Ok(next) => next,
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection");
                if !is_clients_fault(&error) {
                    tokio::time::sleep(REST).await;
                }
                continue;
            }
        };
        let (router, stopping, until_closed) = (router.clone(), stopping.clone(), open.subscribe());
        tokio::spawn(async move {
            match refused {
                None => serve_one(stream, connection, router, stopping).await,
                Some(refused) => refuse(stream, &refused, &connection).await,
            }
            drop(until_closed);
        });
        // Reads what has already arrived, before the next connection could evict this one.
        tokio::task::yield_now().await;
    }
    open.closed().await;
}

/// A TCP or Unix stream.
type Stream = Box<dyn Both>;

trait Both: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Both for S {}

/// A connection that has just been accepted.
struct Incoming {
    stream: Stream,
    connection: Arc<Connection>,
    refused: Option<Refused>,
}

async fn accept(listener: &Listener, connections: &Connections) -> io::Result<Incoming> {
    match listener {
        Listener::Tcp(listener) => {
            let (stream, address) = listener.accept().await?;
            // Events are small; do not delay them.
            let _ = stream.set_nodelay(true);
            let connection = connections.enter(Peer::of(address.ip()));
            Ok(Incoming { stream: Box::new(stream), connection, refused: None })
        }
        Listener::Unix(socket) => {
            let stream = socket.accept().await?;
            let connection = connections.enter(None);
            let refused = check_user(&stream).and_then(|()| connection.admit()).err();
            Ok(Incoming { stream: Box::new(stream), connection, refused })
        }
    }
}

/// A Unix socket needs no token. Its mode keeps other users out, but users can change it.
fn check_user(stream: &UnixStream) -> Result<(), Refused> {
    let user = stream.peer_cred().map_err(|_| Refused::ForbiddenUser)?.uid();
    let own = rustix::process::geteuid().as_raw();
    if may_connect(user, own) { Ok(()) } else { Err(Refused::ForbiddenUser) }
}

fn may_connect(user: u32, own: u32) -> bool {
    user == own || user == 0
}

fn is_clients_fault(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn serve_one(
    stream: Stream,
    connection: Arc<Connection>,
    router: Gated,
    stopping: CancellationToken,
) {
    let answering = Arc::clone(&connection);
    let service = service_fn(move |request| {
        let (router, connection) = (router.clone(), Arc::clone(&answering));
        async move { Ok::<_, Infallible>(router.answer(request, &connection).await) }
    });
    let mut protocol = http1::Builder::new();
    protocol.max_header_size(HEAD_BYTES);
    let mut serving = protocol.serve_connection(TokioIo::new(stream), service);
    let overdue = tokio::select! {
        biased;
        // First, so that a request that has arrived wins over a timeout.
        _ = &mut serving => return,
        why = connection.overdue() => Some(why),
        () = stopping.cancelled() => None,
    };
    match overdue {
        Some(why) => {
            let parts = serving.into_parts();
            // A client that has sent nothing gets no answer.
            if !parts.read_buf.is_empty() {
                refuse(parts.io.into_inner(), &why, &connection).await;
            }
        }
        None if connection.is_busy() => {
            // The answer in progress is the last one; the client may take its time to read it.
            Pin::new(&mut serving).graceful_shutdown();
            let _ = serving.await;
        }
        None => {}
    }
}

/// Tells a client why it is not served, without the HTTP library.
async fn refuse(mut stream: Stream, refused: &Refused, connection: &Connection) {
    let bytes = refused.bytes();
    let answered = async {
        stream.write_all(&bytes).await?;
        stream.shutdown().await?;
        // A client that is still sending would miss the answer if nobody read the rest. But do
        // not wait for one that has been evicted.
        let mut rest = [0; 1024];
        while *refused != Refused::TooManyConnections && stream.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    tokio::select! {
        biased;
        // If the client does not read it, give up.
        _ = timeout(REFUSAL, answered) => {}
        () = connection.evicted() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_user_and_root_may_use_a_socket() {
        assert!(may_connect(1000, 1000));
        assert!(may_connect(0, 1000));
        assert!(!may_connect(1001, 1000));
        assert!(!may_connect(1000, 0));
    }
}
