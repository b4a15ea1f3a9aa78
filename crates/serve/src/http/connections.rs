//! Limits the number of connections and how long each may stay.
//!
//! A connection is a stranger until one of its requests has passed the gate. Strangers get few
//! slots and little time; when all slots are taken, the oldest one without a request is evicted.
//! So clients without the token cannot keep out those with it.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::refused::Refused;

/// Limits on connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Maximum number of connections that have not passed the gate.
    pub(crate) strangers: usize,
    pub(crate) strangers_per_peer: usize,
    /// Maximum number of connections that have.
    pub(crate) admitted: usize,
    pub(crate) admitted_per_peer: usize,
    /// Time limit for the head of a stranger's request, from the moment it connects.
    pub(crate) head: Duration,
    /// Time limit between requests of an admitted connection, including the next head.
    pub(crate) idle: Duration,
    /// Time limit for a body, in addition to what `body_bytes_per_second` allows.
    pub(crate) body: Duration,
    pub(crate) body_bytes_per_second: usize,
}

impl Limits {
    /// The defaults, with the given maximum of admitted connections.
    pub(crate) fn of(admitted: usize) -> Self {
        Self {
            strangers: 64,
            strangers_per_peer: 8,
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
    /// By number, that is, by age.
    strangers: BTreeMap<u64, Arc<Slot>>,
    admitted: usize,
    /// Peers with admitted connections, for peers that are counted.
    peers: HashMap<Peer, usize>,
}

/// State shared by the table and the connection.
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

/// A connection, which frees its slot when dropped.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    number: u64,
    place: Arc<Slot>,
}

impl Connections {
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Arc::new(Shared { limits, table: Mutex::default() }))
    }

    /// Adds a stranger. If all slots are taken, evicts another one.
    pub(crate) fn enter(&self, peer: Option<Peer>) -> Arc<Connection> {
        let mut table = self.0.table();
        let Limits { strangers, strangers_per_peer, .. } = self.0.limits;
        let same = table.strangers.values().filter(|it| peer.is_some() && it.peer == peer).count();
        if same >= strangers_per_peer {
            table.evict(|place| place.peer == peer);
        } else if table.strangers.len() >= strangers {
            table.evict(|_| true);
        }
        let phase = Phase { admitted: false, busy: false, since: Instant::now() };
        let phase = watch::Sender::new(phase);
        let place = Arc::new(Slot { peer, phase, evicted: CancellationToken::new() });
        let number = table.next;
        table.next += 1;
        table.strangers.insert(number, Arc::clone(&place));
        Arc::new(Connection { shared: Arc::clone(&self.0), number, place })
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> (usize, usize) {
        let table = self.0.table();
        (table.strangers.len(), table.admitted)
    }
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Evicts the oldest stranger that matches, preferably one without a request.
    fn evict(&mut self, which: impl Fn(&Slot) -> bool) {
        let some = self.strangers.iter().filter(|(_, place)| which(place));
        let oldest = some.min_by_key(|(number, place)| (place.phase.borrow().busy, **number));
        if let Some(number) = oldest.map(|(number, _)| *number)
            && let Some(place) = self.strangers.remove(&number)
        {
            place.evicted.cancel();
        }
    }
}

impl Connection {
    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    pub(crate) fn is_admitted(&self) -> bool {
        self.place.phase.borrow().admitted
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.place.phase.borrow().busy
    }

    /// Makes a stranger an admitted connection.
    ///
    /// # Errors
    /// If there are too many.
    pub(crate) fn admit(&self) -> Result<(), Refused> {
        let mut table = self.shared.table();
        if self.is_admitted() {
            return Ok(());
        }
        let Limits { admitted, admitted_per_peer, .. } = self.shared.limits;
        let peer = self.place.peer;
        let same = peer.and_then(|peer| table.peers.get(&peer).copied()).unwrap_or(0);
        if table.admitted >= admitted || same >= admitted_per_peer {
            return Err(Refused::TooManyConnections);
        }
        table.strangers.remove(&self.number);
        table.admitted += 1;
        if let Some(peer) = peer {
            *table.peers.entry(peer).or_default() += 1;
        }
        self.place.phase.send_modify(|phase| phase.admitted = true);
        Ok(())
    }

    /// Marks a request as being answered until the guard is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Underway {
        self.place.phase.send_modify(|phase| phase.busy = true);
        Underway(Arc::clone(self))
    }

    /// Completes when this connection has been evicted.
    pub(crate) async fn evicted(&self) {
        self.place.evicted.cancelled().await;
    }

    /// Completes when the connection must end: it timed out or was evicted.
    pub(crate) async fn overdue(&self) -> Refused {
        let mut phases = self.place.phase.subscribe();
        loop {
            let phase = *phases.borrow_and_update();
            let Limits { head, idle, .. } = self.shared.limits;
            let end = phase.since + if phase.admitted { idle } else { head };
            tokio::select! {
                // The sender lives as long as `self`.
                _ = phases.changed() => {}
                () = sleep_until(end), if !phase.busy => return Refused::SlowHead,
                () = self.place.evicted.cancelled(), if !phase.admitted => {
                    // It may have been admitted at the last moment.
                    if !self.is_admitted() {
                        return Refused::TooManyConnections;
                    }
                }
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut table = self.shared.table();
        table.strangers.remove(&self.number);
        if !self.is_admitted() {
            return;
        }
        table.admitted -= 1;
        if let Some(peer) = self.place.peer
            && let Some(count) = table.peers.get_mut(&peer)
        {
            *count -= 1;
            if *count == 0 {
                table.peers.remove(&peer);
            }
        }
    }
}

/// A request that is being answered. The idle time starts when it is dropped.
pub(crate) struct Underway(Arc<Connection>);

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.place.phase.send_modify(|phase| {
            phase.busy = false;
            phase.since = Instant::now();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits { strangers: 3, strangers_per_peer: 2, admitted_per_peer: 2, ..Limits::of(3) }
    }

    fn peer(address: &str) -> Option<Peer> {
        Peer::of(address.parse().unwrap())
    }

    fn evicted(connection: &Connection) -> bool {
        connection.place.evicted.is_cancelled()
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
    fn the_oldest_silent_stranger_is_evicted() {
        let connections = Connections::new(limits());
        let [first, second, third] = [(); 3].map(|()| connections.enter(None));
        let request = first.begin();
        let fourth = connections.enter(None);
        assert!(evicted(&second), "the first has sent a request");
        assert!(![&first, &third, &fourth].into_iter().any(|it| evicted(it)));
        fourth.admit().unwrap();
        let _fifth = connections.enter(None);
        assert!(!evicted(&third), "the fourth takes no stranger's place any more");
        drop(request);
        let _sixth = connections.enter(None);
        assert!(evicted(&first));
        drop((first, second, third));
        assert_eq!(connections.count(), (2, 1));
    }

    #[test]
    fn admitted_connections_are_limited_and_counted() {
        let connections = Connections::new(limits());
        let mut admitted = Vec::new();
        for _ in 0..3 {
            let connection = connections.enter(None);
            connection.admit().unwrap();
            connection.admit().unwrap();
            admitted.push(connection);
        }
        let late = connections.enter(None);
        assert!(matches!(late.admit(), Err(Refused::TooManyConnections)));
        assert_eq!(connections.count(), (1, 3));
        admitted.pop();
        late.admit().unwrap();
        drop((admitted, late));
        assert_eq!(connections.count(), (0, 0));
    }

    #[test]
    fn one_host_cannot_take_all_slots() {
        let connections = Connections::new(limits());
        let (greedy, other) = (peer("10.0.0.1"), peer("10.0.0.2"));
        let modest = connections.enter(other);
        let first = connections.enter(greedy);
        let _second = connections.enter(greedy);
        let _third = connections.enter(greedy);
        assert!(evicted(&first), "its own oldest gives way");
        assert!(!evicted(&modest));
        let kept: Vec<_> = (0..2)
            .map(|_| {
                let connection = connections.enter(greedy);
                connection.admit().unwrap();
                connection
            })
            .collect();
        assert!(connections.enter(greedy).admit().is_err());
        modest.admit().unwrap();
        drop(kept);
        connections.enter(greedy).admit().unwrap();
        assert!(connections.0.table().peers.len() == 1, "nothing is kept of hosts that left");
    }
}
