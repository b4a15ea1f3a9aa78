//! Wraps rmcp's HTTP sessions to limit their number and to cancel calls of clients that have
//! disconnected.
//!
//! The protocol lets a client reconnect and resume a stream, so a call without a listener continues
//! for a few seconds before it is cancelled.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_core::Stream;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification,
    RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionTransport,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};

/// Idle time after which a session ends; its client starts another.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4 * 3600);

/// Maximum number of sessions. Beyond it, the least recently used one ends.
const MAX_SESSIONS: usize = 256;

/// How long disconnected clients are told to wait before they reconnect.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// How long a call continues after its client has disconnected.
const LISTENER_TIMEOUT: Duration = Duration::from_secs(5);

/// The sessions of a server.
#[derive(Clone)]
pub(crate) struct Sessions(Arc<Inner>);

struct Inner {
    local: LocalSessionManager,
    sessions: Mutex<HashMap<SessionId, Session>>,
    /// Held while a session is created: two at a time could both take the last slot.
    creating: tokio::sync::Mutex<()>,
}

struct Session {
    last_used: Instant,
    /// Running calls, by the number of the stream that will carry their answer.
    calls: HashMap<u64, Arc<Call>>,
}

/// A request that is being answered.
struct Call {
    session: SessionId,
    request: RequestId,
    listeners: AtomicUsize,
    answered: AtomicBool,
}

impl Sessions {
    pub(crate) fn new() -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(IDLE_TIMEOUT);
        local.session_config.sse_retry = Some(RECONNECT_DELAY);
        let (sessions, creating) = (Mutex::default(), tokio::sync::Mutex::default());
        Self(Arc::new(Inner { local, sessions, creating }))
    }

    /// Wraps the stream of a running call.
    fn listen(
        &self,
        call: Option<Arc<Call>>,
        stream: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
    ) -> CallStream {
        if let Some(call) = &call {
            call.listeners.fetch_add(1, Ordering::AcqRel);
        }
        CallStream { sessions: self.0.clone(), call, stream: Box::pin(stream) }
    }
}

impl Inner {
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session to close before a new one is created, if there are too many: the least recently
    /// used one, preferably without a running call.
    fn session_to_close(&self) -> Option<SessionId> {
        let sessions = self.sessions();
        if sessions.len() < MAX_SESSIONS {
            return None;
        }
        let oldest = sessions.iter().min_by_key(|(_, it)| (!it.calls.is_empty(), it.last_used));
        oldest.map(|(id, _)| id.clone())
    }

    /// Tracks which stream carries the answer of a call, until it is answered.
    fn record(&self, call: &Arc<Call>, event: &ServerSseMessage) {
        let answer = matches!(
            event.message.as_deref(),
            Some(ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))
        );
        if answer {
            call.answered.store(true, Ordering::Release);
            self.forget(call);
        } else if let Some(number) = event.event_id.as_deref().and_then(stream_number)
            && let Some(session) = self.sessions().get_mut(&call.session)
        {
            session.calls.entry(number).or_insert_with(|| call.clone());
        }
    }

    fn forget(&self, call: &Call) {
        if let Some(session) = self.sessions().get_mut(&call.session) {
            session.calls.retain(|_, it| !std::ptr::eq(&**it, call));
        }
    }

    fn call_on_stream(&self, id: &SessionId, number: u64) -> Option<Arc<Call>> {
        self.sessions().get(id)?.calls.get(&number).cloned()
    }

    /// Cancels a call if its client does not reconnect in time.
    async fn cancel_abandoned(&self, call: &Call) {
        tokio::time::sleep(LISTENER_TIMEOUT).await;
        if call.listeners.load(Ordering::Acquire) > 0 {
            return;
        }
        self.forget(call);
        let param = CancelledNotificationParam::new(
            Some(call.request.clone()),
            Some("the client has disconnected".to_owned()),
        );
        let cancel = ClientNotification::CancelledNotification(CancelledNotification::new(param));
        let cancel = ClientJsonRpcMessage::notification(cancel);
        // The session may have ended meanwhile, and its calls with it.
        let _ = self.local.accept_message(&call.session, cancel).await;
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = SessionTransport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let _guard = self.0.creating.lock().await;
        while let Some(oldest) = self.0.session_to_close() {
            tracing::info!(session = %oldest, "too many sessions: closing the least recently used");
            self.close_session(&oldest).await?;
        }
        let (id, transport) = self.0.local.create_session().await?;
        let session = Session { last_used: Instant::now(), calls: HashMap::new() };
        self.0.sessions().insert(id.clone(), session);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.0.local.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        if let Some(session) = self.0.sessions().get_mut(id) {
            session.last_used = Instant::now();
        }
        self.0.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.0.sessions().remove(id);
        self.0.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let request = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let stream = self.0.local.create_stream(id, message).await?;
        let call = request.map(|request| {
            let (listeners, answered) = (AtomicUsize::new(0), AtomicBool::new(false));
            Arc::new(Call { session: id.clone(), request, listeners, answered })
        });
        Ok(self.listen(call, stream))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.0.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.0.local.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let call =
            stream_number(&last_event_id).and_then(|number| self.0.call_on_stream(id, number));
        let stream = self.0.local.resume(id, last_event_id).await?;
        Ok(self.listen(call, stream))
    }
}

/// A stream of events for a client. Dropping it starts the timeout of its call.
struct CallStream {
    sessions: Arc<Inner>,
    call: Option<Arc<Call>>,
    /// rmcp's stream type cannot be named.
    stream: Pin<Box<dyn Stream<Item = ServerSseMessage> + Send + Sync>>,
}

impl Stream for CallStream {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.stream.as_mut().poll_next(context);
        if let (Poll::Ready(Some(event)), Some(call)) = (&next, &self.call) {
            self.sessions.record(call, event);
        }
        next
    }
}

impl Drop for CallStream {
    fn drop(&mut self) {
        let Some(call) = self.call.take() else { return };
        let others = call.listeners.fetch_sub(1, Ordering::AcqRel) > 1;
        if others || call.answered.load(Ordering::Acquire) {
            return;
        }
        let sessions = self.sessions.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { sessions.cancel_abandoned(&call).await });
        }
    }
}

/// Event ids are `<event>/<stream>` if they belong to a call.
fn stream_number(event: &str) -> Option<u64> {
    event.split_once('/')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn concurrent_new_sessions_respect_the_limit() {
        let sessions = Sessions::new();
        let tasks: Vec<_> = (0..MAX_SESSIONS + 50)
            .map(|_| {
                let sessions = sessions.clone();
                tokio::spawn(async move { sessions.create_session().await.unwrap() })
            })
            .collect();
        let mut kept = Vec::new();
        for task in tasks {
            kept.push(task.await.unwrap());
            assert!(sessions.0.sessions().len() <= MAX_SESSIONS);
        }
        assert_eq!(sessions.0.sessions().len(), MAX_SESSIONS);
        assert_eq!(sessions.0.local.sessions.read().await.len(), MAX_SESSIONS);
    }
}
