//! HTTP sessions on top of those of rmcp: their number is limited, and calls of clients that
//! disconnect do not keep running.
//!
//! The protocol lets a client reconnect for an answer. So a call without a listener continues for
//! a moment before it is cancelled.

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

/// A session that is idle for this long ends; its client starts another.
const IDLE: Duration = Duration::from_secs(4 * 3600);

/// Maximum number of sessions. Beyond it, the one idle for longest ends.
const MAX_SESSIONS: usize = 256;

/// When a disconnected client should reconnect.
const COME_BACK: Duration = Duration::from_secs(1);

/// How long a call continues without a listener.
const PATIENCE: Duration = Duration::from_secs(5);

/// The sessions of a server.
#[derive(Clone)]
pub(crate) struct Sessions(Arc<Inner>);

struct Inner {
    local: LocalSessionManager,
    known: Mutex<HashMap<SessionId, Session>>,
    /// Held while a session starts: two at a time could both take the last slot.
    beginning: tokio::sync::Mutex<()>,
}

struct Session {
    heard: Instant,
    /// Running calls, by the number of the stream that carries their answer.
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
        local.session_config.keep_alive = Some(IDLE);
        local.session_config.sse_retry = Some(COME_BACK);
        let (known, beginning) = (Mutex::default(), tokio::sync::Mutex::default());
        Self(Arc::new(Inner { local, known, beginning }))
    }

    /// Wraps the stream of a running call.
    fn listen(
        &self,
        call: Option<Arc<Call>>,
        stream: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
    ) -> Listening {
        if let Some(call) = &call {
            call.listeners.fetch_add(1, Ordering::AcqRel);
        }
        Listening { sessions: self.0.clone(), call, stream: Box::pin(stream) }
    }
}

impl Inner {
    fn known(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session to end in favour of a new one: the one idle for longest, preferably without a
    /// running call.
    fn surplus(&self) -> Option<SessionId> {
        let known = self.known();
        if known.len() < MAX_SESSIONS {
            return None;
        }
        let silent = known.iter().min_by_key(|(_, it)| (!it.calls.is_empty(), it.heard));
        silent.map(|(id, _)| id.clone())
    }

    /// Remembers which stream carries the answer of a call, until it is answered.
    fn note(&self, call: &Arc<Call>, event: &ServerSseMessage) {
        let answer = matches!(
            event.message.as_deref(),
            Some(ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))
        );
        if answer {
            call.answered.store(true, Ordering::Release);
            self.forget(call);
        } else if let Some(number) = event.event_id.as_deref().and_then(stream_number)
            && let Some(session) = self.known().get_mut(&call.session)
        {
            session.calls.entry(number).or_insert_with(|| call.clone());
        }
    }

    fn forget(&self, call: &Call) {
        if let Some(session) = self.known().get_mut(&call.session) {
            session.calls.retain(|_, it| !std::ptr::eq(&**it, call));
        }
    }

    fn call_on(&self, id: &SessionId, number: u64) -> Option<Arc<Call>> {
        self.known().get(id)?.calls.get(&number).cloned()
    }

    /// Cancels a call whose client does not reconnect.
    async fn give_up(&self, call: &Call) {
        tokio::time::sleep(PATIENCE).await;
        if call.listeners.load(Ordering::Acquire) > 0 {
            return;
        }
        self.forget(call);
        let param = CancelledNotificationParam::new(
            Some(call.request.clone()),
            Some("the client is gone".to_owned()),
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
        let _only = self.0.beginning.lock().await;
        while let Some(surplus) = self.0.surplus() {
            tracing::info!(session = %surplus, "too many sessions: closing the one idle for longest");
            self.close_session(&surplus).await?;
        }
        let (id, transport) = self.0.local.create_session().await?;
        let session = Session { heard: Instant::now(), calls: HashMap::new() };
        self.0.known().insert(id.clone(), session);
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
        if let Some(session) = self.0.known().get_mut(id) {
            session.heard = Instant::now();
        }
        self.0.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.0.known().remove(id);
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
        let call = stream_number(&last_event_id).and_then(|number| self.0.call_on(id, number));
        let stream = self.0.local.resume(id, last_event_id).await?;
        Ok(self.listen(call, stream))
    }
}

/// A stream that a client listens to.
struct Listening {
    sessions: Arc<Inner>,
    call: Option<Arc<Call>>,
    /// rmcp's stream type cannot be named.
    stream: Pin<Box<dyn Stream<Item = ServerSseMessage> + Send + Sync>>,
}

impl Stream for Listening {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.stream.as_mut().poll_next(context);
        if let (Poll::Ready(Some(event)), Some(call)) = (&next, &self.call) {
            self.sessions.note(call, event);
        }
        next
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let Some(call) = self.call.take() else { return };
        let others = call.listeners.fetch_sub(1, Ordering::AcqRel) > 1;
        if others || call.answered.load(Ordering::Acquire) {
            return;
        }
        let sessions = self.sessions.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { sessions.give_up(&call).await });
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
        let beginnings: Vec<_> = (0..MAX_SESSIONS + 50)
            .map(|_| {
                let sessions = sessions.clone();
                tokio::spawn(async move { sessions.create_session().await.unwrap() })
            })
            .collect();
        let mut kept = Vec::new();
        for beginning in beginnings {
            kept.push(beginning.await.unwrap());
            assert!(sessions.0.known().len() <= MAX_SESSIONS);
        }
        assert_eq!(sessions.0.known().len(), MAX_SESSIONS);
        assert_eq!(sessions.0.local.sessions.read().await.len(), MAX_SESSIONS);
    }
}
