//! Which user's process is at the other end of a loopback connection.
//!
//! The kernel lists the sockets of this machine with their users. A connection over loopback has
//! both of its ends in that list.

use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, SocketAddr};

/// The two ends of a TCP connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) own: SocketAddr,
    pub(crate) peer: SocketAddr,
}

impl Ends {
    /// Whether the other end belongs to the user who runs this program, or to root. False if the
    /// system does not tell.
    pub(crate) fn is_same_user(self) -> bool {
        let list = match self.peer.ip() {
            IpAddr::V4(_) => "/proc/net/tcp",
            IpAddr::V6(_) => "/proc/net/tcp6",
        };
        let Ok(sockets) = fs::read_to_string(list) else { return false };
        let own = rustix::process::geteuid().as_raw();
        self.user(&sockets).is_some_and(|user| user == own || user == 0)
    }

    /// The user of the other end, in the kernel's list of sockets.
    fn user(self, sockets: &str) -> Option<u32> {
        let (peer, own) = (in_list(self.peer), in_list(self.own));
        sockets.lines().skip(1).find_map(|line| {
            let mut columns = line.split_ascii_whitespace().skip(1);
            // From there, the peer's end is the local one.
            let is_it = columns.next() == Some(&peer) && columns.next() == Some(&own);
            is_it.then(|| columns.nth(4)?.parse().ok()).flatten()
        })
    }
}

/// An address as the kernel writes it: words in the byte order of the machine, in hexadecimal.
fn in_list(address: SocketAddr) -> String {
    let mut text = String::new();
    let mut push = |word: [u8; 4]| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{:08X}", u32::from_ne_bytes(word));
    };
    match address.ip() {
        IpAddr::V4(ip) => push(ip.octets()),
        IpAddr::V6(ip) => {
            for word in ip.octets().as_chunks().0 {
                push(*word);
            }
        }
    }
    format!("{text}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_user_of_the_other_end_is_found() {
        let sockets = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n   \
             0: 0100007F:1D84 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 1\n   \
             1: 0100007F:C350 0100007F:1D84 01 00000000:00000000 00:00000000 00000000  1001        0 2\n   \
             2: 0100007F:C351 0100007F:1D84 01 short\n";
        let ends =
            |own: &str, peer: &str| Ends { own: own.parse().unwrap(), peer: peer.parse().unwrap() };
        if cfg!(target_endian = "little") {
            assert_eq!(ends("127.0.0.1:7556", "127.0.0.1:50000").user(sockets), Some(1001));
            assert_eq!(ends("127.0.0.1:50000", "127.0.0.1:7556").user(sockets), Some(1000));
        }
        for peer in ["127.0.0.1:50001", "127.0.0.1:50002", "127.0.0.2:50000"] {
            assert_eq!(ends("127.0.0.1:7556", peer).user(sockets), None, "{peer}");
        }
    }

    #[test]
    fn own_connections_are_recognized() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, peer) = listener.accept().unwrap();
            let ends = Ends { own: server.local_addr().unwrap(), peer };
            assert!(ends.is_same_user(), "{ends:?}");
            drop(client);
        }
    }
}
