//! Accepts connections and serves each until it ends or times out.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::connections::{Connection, Connections, Peer};
use super::ends::Ends;
use super::gate::Gated;
use super::refusal::Refusal;
use super::unix::UnixSocket;

/// Maximum size of a request's head. The gate's limit is lower and has an error message.
const MAX_HEAD_BYTES: usize = 128 << 10;

/// Delay after a failed accept, for example for lack of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// How long a client may take to read a refusal.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// A listening socket.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixSocket),
}

/// Serves connections until `stopping` is cancelled and requests in progress are answered.
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
        let Accepted { stream, connection, ends, refusal } = match next {
            Ok(next) => next,
            Err(error) => {
                tracing::debug!(%error, "cannot accept a connection");
                if !is_client_error(&error) {
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
                continue;
            }
        };
        let (router, stopping, until_closed) = (router.clone(), stopping.clone(), open.subscribe());
        tokio::spawn(async move {
            match refusal {
                None => serve_one(stream, connection, ends, router, stopping).await,
                Some(refusal) => refuse(stream, &refusal, &connection).await,
            }
            drop(until_closed);
        });
        // Lets the task read what has arrived, before the next connection could evict this one.
        tokio::task::yield_now().await;
    }
    open.closed().await;
}

/// A TCP or Unix stream.
type Stream = Box<dyn ByteStream>;

trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// An accepted connection, and why it is refused, if it is.
struct Accepted {
    stream: Stream,
    connection: Arc<Connection>,
    /// Of a TCP connection.
    ends: Option<Ends>,
    refusal: Option<Refusal>,
}

async fn accept(listener: &Listener, connections: &Connections) -> io::Result<Accepted> {
    match listener {
        Listener::Tcp(listener) => {
            let (stream, address) = listener.accept().await?;
            // Events are small; do not delay them.
            let _ = stream.set_nodelay(true);
            let connection = connections.add(Peer::of(address.ip()));
            let ends = stream.local_addr().ok().map(|own| Ends { own, peer: address });
            Ok(Accepted { stream: Box::new(stream), connection, ends, refusal: None })
        }
        Listener::Unix(socket) => {
            let stream = socket.accept().await?;
            let connection = connections.add(None);
            let refusal = check_user(&stream).and_then(|()| connection.admit()).err();
            Ok(Accepted { stream: Box::new(stream), connection, ends: None, refusal })
        }
    }
}

/// A Unix socket needs no token. Its mode keeps other users out, but can be changed.
fn check_user(stream: &UnixStream) -> Result<(), Refusal> {
    let user = stream.peer_cred().map_err(|_| Refusal::ForbiddenUser)?.uid();
    let own = rustix::process::geteuid().as_raw();
    if is_allowed_user(user, own) { Ok(()) } else { Err(Refusal::ForbiddenUser) }
}

fn is_allowed_user(user: u32, own: u32) -> bool {
    user == own || user == 0
}

fn is_client_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn serve_one(
    stream: Stream,
    connection: Arc<Connection>,
    ends: Option<Ends>,
    router: Gated,
    stopping: CancellationToken,
) {
    let answering = Arc::clone(&connection);
    let service = service_fn(move |mut request: Request<Incoming>| {
        if let Some(ends) = ends {
            request.extensions_mut().insert(ends);
        }
        let (router, connection) = (router.clone(), Arc::clone(&answering));
        async move { Ok::<_, Infallible>(router.answer(request, &connection).await) }
    });
    let mut protocol = http1::Builder::new();
    protocol.max_header_size(MAX_HEAD_BYTES);
    let mut serving = protocol.serve_connection(TokioIo::new(stream), service);
    let refusal = tokio::select! {
        biased;
        // First, so that a request that has arrived takes precedence over a timeout.
        _ = &mut serving => return,
        refusal = connection.must_close() => Some(refusal),
        () = stopping.cancelled() => None,
    };
    match refusal {
        Some(refusal) => {
            let parts = serving.into_parts();
            // A client that has sent nothing gets no answer.
            if !parts.read_buf.is_empty() {
                refuse(parts.io.into_inner(), &refusal, &connection).await;
            }
        }
        None if connection.is_busy() => {
            // Finish the answer in progress, however long the client takes to read it.
            Pin::new(&mut serving).graceful_shutdown();
            let _ = serving.await;
        }
        None => {}
    }
}

/// Sends a refusal, bypassing the HTTP library, and closes the connection.
async fn refuse(mut stream: Stream, refusal: &Refusal, connection: &Connection) {
    let bytes = refusal.bytes();
    let answered = async {
        stream.write_all(&bytes).await?;
        stream.shutdown().await?;
        // Read the rest of the request, or the client may lose the answer. Do not wait for a
        // client that was evicted.
        let mut rest = [0; 1024];
        while *refusal != Refusal::TooManyConnections && stream.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    tokio::select! {
        biased;
        _ = timeout(REFUSAL_TIMEOUT, answered) => {}
        () = connection.evicted() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_and_root_may_connect() {
        assert!(is_allowed_user(1000, 1000));
        assert!(is_allowed_user(0, 1000));
        assert!(!is_allowed_user(1001, 1000));
        assert!(!is_allowed_user(1000, 0));
    }
}
