//! Addresses to listen on.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use isolith_types::{Code, Failure};

/// An address to listen on, in the syntax of `--listen`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// An address and a port; 0 means any free port.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl Listen {
    /// Whether only processes on this machine can connect.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl FromStr for Listen {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err(Failure::new(Code::Usage, "unix: needs the path of a socket")),
                path => Ok(Self::Unix(PathBuf::from(path))),
            };
        }
        text.parse().map(Self::Tcp).map_err(|_| {
            let message = "expected ADDRESS:PORT, such as 127.0.0.1:7411, or unix:PATH";
            Failure::new(Code::Usage, message)
        })
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        for (text, local) in [
            ("127.0.0.1:0", Some(true)),
            ("[::1]:7411", Some(true)),
            ("0.0.0.0:7411", Some(false)),
            ("10.0.0.1:1", Some(false)),
            ("unix:/run/isolith.sock", Some(true)),
            ("unix:relative", Some(true)),
            ("unix:", None),
            ("/run/isolith.sock", None),
            ("localhost:7411", None),
            ("7411", None),
        ] {
            let read = text.parse::<Listen>();
            assert_eq!(read.as_ref().ok().map(Listen::is_local), local, "{text}");
            assert!(read.is_err() || read.unwrap().to_string() == text);
        }
    }
}
