//! Limits the number of connections and how long each may stay.
//!
//! A connection is pending until one of its requests has passed the gate, then it is admitted.
//! Pending connections get few slots and little time; when all slots are taken, the oldest one
//! without a request is evicted. So clients without the token cannot lock out those with it.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::refusal::Refusal;

/// Limits on connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Maximum number of pending connections.
    pub(crate) pending: usize,
    pub(crate) pending_per_peer: usize,
    /// Maximum number of admitted connections.
    pub(crate) admitted: usize,
    pub(crate) admitted_per_peer: usize,
    /// Time from connecting until the first head must be complete.
    pub(crate) head: Duration,
    /// Time between an answer and the next complete head, once admitted.
    pub(crate) idle: Duration,
    /// Time for a body, in addition to the time allowed by `body_bytes_per_second`.
    pub(crate) body: Duration,
    pub(crate) body_bytes_per_second: usize,
}

impl Limits {
    /// The defaults, with the given maximum of admitted connections.
    pub(crate) fn of(admitted: usize) -> Self {
        Self {
            pending: 512,
            pending_per_peer: 8,
            admitted,
            admitted_per_peer: admitted.div_ceil(4),
            head: Duration::from_secs(10),
            idle: Duration::from_secs(300),
            body: Duration::from_secs(30),
            body_bytes_per_second: 16 << 10,
        }
    }
}

/// All connections of a server.
#[derive(Clone)]
pub(crate) struct Connections(Arc<Shared>);

struct Shared {
    limits: Limits,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    next: u64,
    /// By number, and so from oldest to newest.
    pending: BTreeMap<u64, Arc<Slot>>,
    admitted: usize,
    /// Number of admitted connections by peer.
    peers: HashMap<Peer, usize>,
}

/// The state of a connection, shared with the table.
struct Slot {
    peer: Option<Peer>,
    phase: watch::Sender<Phase>,
    evicted: CancellationToken,
}

#[derive(Debug, Clone, Copy)]
struct Phase {
    admitted: bool,
    /// Whether a request is being answered. An open event stream counts.
    busy: bool,
    since: Instant,
}

/// A remote host. In IPv6 a host has a whole /64 of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Peer(IpAddr);

impl Peer {
    /// `None` for this machine, where addresses do not tell clients apart.
    pub(crate) fn of(address: IpAddr) -> Option<Self> {
        let address = address.to_canonical();
        let host = match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) & (u128::MAX << 64)).into()),
        };
        (!address.is_loopback()).then_some(Self(host))
    }
}

/// A connection. Frees its slot when dropped.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    number: u64,
    slot: Arc<Slot>,
}

impl Connections {
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Arc::new(Shared { limits, table: Mutex::default() }))
    }

    /// Adds a pending connection. If all slots are taken, evicts another one.
    pub(crate) fn add(&self, peer: Option<Peer>) -> Arc<Connection> {
        let mut table = self.0.table();
        let Limits { pending, pending_per_peer, .. } = self.0.limits;
        let from_peer =
            table.pending.values().filter(|it| peer.is_some() && it.peer == peer).count();
        if from_peer >= pending_per_peer {
            table.evict(|slot| slot.peer == peer);
        } else if table.pending.len() >= pending {
            table.evict(|_| true);
        }
        let phase = Phase { admitted: false, busy: false, since: Instant::now() };
        let phase = watch::Sender::new(phase);
        let slot = Arc::new(Slot { peer, phase, evicted: CancellationToken::new() });
        let number = table.next;
        table.next += 1;
        table.pending.insert(number, Arc::clone(&slot));
        Arc::new(Connection { shared: Arc::clone(&self.0), number, slot })
    }

    /// The numbers of pending and admitted connections.
    pub(crate) fn count(&self) -> (usize, usize) {
        let table = self.0.table();
        (table.pending.len(), table.admitted)
    }
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Evicts the oldest matching pending connection, preferably one without a request.
    fn evict(&mut self, which: impl Fn(&Slot) -> bool) {
        let some = self.pending.iter().filter(|(_, slot)| which(slot));
        let oldest = some.min_by_key(|(number, slot)| (slot.phase.borrow().busy, **number));
        if let Some(number) = oldest.map(|(number, _)| *number)
            && let Some(slot) = self.pending.remove(&number)
        {
            slot.evicted.cancel();
        }
    }
}

impl Connection {
    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    pub(crate) fn is_admitted(&self) -> bool {
        self.slot.phase.borrow().admitted
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.slot.phase.borrow().busy
    }

    /// Admits a pending connection.
    ///
    /// # Errors
    /// If too many are admitted.
    pub(crate) fn admit(&self) -> Result<(), Refusal> {
        let mut table = self.shared.table();
        if self.is_admitted() {
            return Ok(());
        }
        let Limits { admitted, admitted_per_peer, .. } = self.shared.limits;
        let peer = self.slot.peer;
        let from_peer = peer.and_then(|peer| table.peers.get(&peer).copied()).unwrap_or(0);
        if table.admitted >= admitted || from_peer >= admitted_per_peer {
            return Err(Refusal::TooManyConnections);
        }
        table.pending.remove(&self.number);
        table.admitted += 1;
        if let Some(peer) = peer {
            *table.peers.entry(peer).or_default() += 1;
        }
        self.slot.phase.send_modify(|phase| phase.admitted = true);
        Ok(())
    }

    /// Marks a request as being answered until the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> RequestGuard {
        self.slot.phase.send_modify(|phase| phase.busy = true);
        RequestGuard(Arc::clone(self))
    }

    /// Waits until this connection is evicted.
    pub(crate) async fn evicted(&self) {
        self.slot.evicted.cancelled().await;
    }

    /// Waits until the connection must be closed because it timed out or was evicted.
    pub(crate) async fn must_close(&self) -> Refusal {
        let mut phases = self.slot.phase.subscribe();
        loop {
            let phase = *phases.borrow_and_update();
            let Limits { head, idle, .. } = self.shared.limits;
            let end = phase.since + if phase.admitted { idle } else { head };
            tokio::select! {
                // The sender lives as long as `self`.
                _ = phases.changed() => {}
                () = sleep_until(end), if !phase.busy => return Refusal::SlowHead,
                () = self.slot.evicted.cancelled(), if !phase.admitted => {
                    // It may have been admitted at the last moment.
                    if !self.is_admitted() {
                        return Refusal::TooManyConnections;
                    }
                }
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut table = self.shared.table();
        table.pending.remove(&self.number);
        if !self.is_admitted() {
            return;
        }
        table.admitted -= 1;
        if let Some(peer) = self.slot.peer
            && let Some(count) = table.peers.get_mut(&peer)
        {
            *count -= 1;
            if *count == 0 {
                table.peers.remove(&peer);
            }
        }
    }
}

/// Marks a request as being answered. The idle time starts when it is dropped.
pub(crate) struct RequestGuard(Arc<Connection>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.slot.phase.send_modify(|phase| {
            phase.busy = false;
            phase.since = Instant::now();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits { pending: 3, pending_per_peer: 2, admitted_per_peer: 2, ..Limits::of(3) }
    }

    fn peer(address: &str) -> Option<Peer> {
        Peer::of(address.parse().unwrap())
    }

    fn evicted(connection: &Connection) -> bool {
        connection.slot.evicted.is_cancelled()
    }

    #[test]
    fn remote_hosts_are_distinguished_but_local_clients_are_not() {
        assert_eq!(peer("127.0.0.1"), None);
        assert_eq!(peer("::1"), None);
        assert_eq!(peer("::ffff:127.0.0.1"), None);
        assert_eq!(peer("::ffff:10.0.0.1"), peer("10.0.0.1"));
        assert_ne!(peer("10.0.0.2"), peer("10.0.0.1"));
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
    }

    #[test]
    fn the_oldest_pending_connection_without_a_request_is_evicted() {
        let connections = Connections::new(limits());
        let [first, second, third] = [(); 3].map(|()| connections.add(None));
        let request = first.begin();
        let fourth = connections.add(None);
        assert!(evicted(&second), "the first has sent a request");
        assert!(![&first, &third, &fourth].into_iter().any(|it| evicted(it)));
        fourth.admit().unwrap();
        let _fifth = connections.add(None);
        assert!(!evicted(&third), "the fourth is no longer pending");
        drop(request);
        let _sixth = connections.add(None);
        assert!(evicted(&first));
        drop((first, second, third));
        assert_eq!(connections.count(), (2, 1));
    }

    #[test]
    fn admitted_connections_are_limited_and_counted() {
        let connections = Connections::new(limits());
        let mut admitted = Vec::new();
        for _ in 0..3 {
            let connection = connections.add(None);
            connection.admit().unwrap();
            connection.admit().unwrap();
            admitted.push(connection);
        }
        let late = connections.add(None);
        assert!(matches!(late.admit(), Err(Refusal::TooManyConnections)));
        assert_eq!(connections.count(), (1, 3));
        admitted.pop();
        late.admit().unwrap();
        drop((admitted, late));
        assert_eq!(connections.count(), (0, 0));
    }

    #[test]
    fn one_host_cannot_take_all_slots() {
        let connections = Connections::new(limits());
        let (busy_host, other) = (peer("10.0.0.1"), peer("10.0.0.2"));
        let other_client = connections.add(other);
        let first = connections.add(busy_host);
        let _second = connections.add(busy_host);
        let _third = connections.add(busy_host);
        assert!(evicted(&first), "the host's oldest is evicted");
        assert!(!evicted(&other_client));
        let kept: Vec<_> = (0..2)
            .map(|_| {
                let connection = connections.add(busy_host);
                connection.admit().unwrap();
                connection
            })
            .collect();
        assert!(connections.add(busy_host).admit().is_err());
        other_client.admit().unwrap();
        drop(kept);
        connections.add(busy_host).admit().unwrap();
        assert!(connections.0.table().peers.len() == 1, "disconnected hosts are forgotten");
    }
}
