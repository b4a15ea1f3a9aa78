//! Which host names and web origins requests may have.
//!
//! A page whose name resolves to this machine (DNS rebinding) sends that name as the host; any
//! other page is named as the request's origin.

use std::net::IpAddr;

use axum::http::request::Parts;
use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderValue, header};

use super::refused::Refused;

/// Loopback names.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The host names that a server accepts.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// `None` accepts any name.
    hosts: Option<Vec<Name>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    host: String,
    /// `None` accepts any port.
    port: Option<u16>,
}

impl Names {
    /// The names of a server that listens on this address, and `more`. A server on all addresses
    /// cannot know its names, but it requires a token, which no web page has.
    pub(crate) fn of(ip: IpAddr, more: &[String]) -> Self {
        if ip.is_unspecified() && more.is_empty() {
            return Self::any();
        }
        let own = ip.to_string();
        let names = LOCAL.into_iter().chain([own.as_str()]).chain(more.iter().map(String::as_str));
        Self { hosts: Some(names.map(Name::listed).collect()) }
    }

    /// Accepts any name: no web page can reach a Unix socket.
    pub(crate) fn any() -> Self {
        Self { hosts: None }
    }

    /// Checks the host name of a request and the page that it comes from.
    ///
    /// # Errors
    /// If either is not allowed.
    pub(crate) fn check(&self, request: &Parts) -> Result<(), Refused> {
        let mut hosts = request.headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Refused::BadHost);
        };
        let host = host.to_str().ok().and_then(|host| Authority::try_from(host).ok());
        // A request to a proxy also has a name in its first line.
        for authority in [Some(&host.ok_or(Refused::BadHost)?), request.uri.authority()] {
            let Some(authority) = authority else { continue };
            if authority.as_str().contains('@') {
                return Err(Refused::BadHost);
            }
            if !self.has(&Name::of(authority)) {
                return Err(Refused::ForbiddenHost);
            }
        }
        check_origin(request)
    }

    fn has(&self, name: &Name) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        hosts.iter().any(|it| it.host == name.host && (it.port.is_none() || it.port == name.port))
    }
}

impl Name {
    fn of(authority: &Authority) -> Self {
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        Self { host: host.to_ascii_lowercase(), port: authority.port_u16() }
    }

    fn listed(text: &str) -> Self {
        match Authority::try_from(text) {
            Ok(authority) => Self::of(&authority),
            // An IPv6 address without brackets.
            Err(_) => Self { host: text.to_ascii_lowercase(), port: None },
        }
    }
}

fn check_origin(request: &Parts) -> Result<(), Refused> {
    let origins: Vec<&HeaderValue> = request.headers.get_all(header::ORIGIN).iter().collect();
    if !origins.iter().all(|origin| is_local(origin)) {
        return Err(Refused::ForbiddenOrigin);
    }
    // Images and links of foreign pages have no origin, but browsers mark them.
    let site = request.headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if origins.is_empty() && site == Some(b"cross-site") {
        return Err(Refused::ForbiddenOrigin);
    }
    Ok(())
}

fn is_local(origin: &HeaderValue) -> bool {
    let uri = origin.to_str().ok().and_then(|origin| Uri::try_from(origin).ok());
    let authority = uri.as_ref().and_then(Uri::authority);
    uri.as_ref().and_then(Uri::scheme_str) == Some("http")
        && authority.is_some_and(|authority| {
            !authority.as_str().contains('@') && LOCAL.contains(&Name::of(authority).host.as_str())
        })
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn checked(names: &Names, uri: &str, headers: &[(&str, &str)]) -> Result<(), Refused> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        names.check(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn only_the_servers_names_are_accepted() {
        let with = |ip: &str, more: &[&str], host: &str| {
            let more: Vec<String> = more.iter().map(|name| (*name).to_owned()).collect();
            checked(&Names::of(ip.parse().unwrap(), &more), "/", &[("Host", host)]).is_ok()
        };
        for (ip, more, host, known) in [
            ("127.0.0.1", &[][..], "localhost", true),
            ("127.0.0.1", &[], "LocalHost:7411", true),
            ("127.0.0.1", &[], "[::1]:7411", true),
            ("127.0.0.1", &[], "evil.example", false),
            ("127.0.0.1", &[], "127.0.0.1.evil.example", false),
            ("127.0.0.1", &[], "localhost.evil.example:7411", false),
            ("127.0.0.1", &[], "evil.example:127", false),
            ("127.0.0.1", &[], "localhost@evil.example", false),
            ("127.0.0.1", &[], "evil.example@localhost", false),
            ("127.0.0.1", &[], "", false),
            ("127.0.0.1", &[], "a b", false),
            ("10.1.2.3", &[], "10.1.2.3:80", true),
            ("10.1.2.3", &[], "10.1.2.4", false),
            ("0.0.0.0", &[], "anything.example", true),
            ("0.0.0.0", &["box.lan"], "box.lan", true),
            ("0.0.0.0", &["box.lan"], "other.lan", false),
            ("127.0.0.1", &["box.lan:8080"], "box.lan:8080", true),
            ("127.0.0.1", &["box.lan:8080"], "box.lan:8081", false),
        ] {
            assert_eq!(with(ip, more, host), known, "{ip} {more:?} {host}");
        }
    }

    #[test]
    fn contradictory_names_are_refused() {
        let names = Names::of([127, 0, 0, 1].into(), &[]);
        assert_eq!(checked(&names, "/", &[]), Err(Refused::BadHost));
        let two = [("Host", "localhost"), ("Host", "evil.example")];
        assert_eq!(checked(&names, "/", &two), Err(Refused::BadHost));
        let host = [("Host", "localhost")];
        assert_eq!(checked(&names, "http://evil.example/", &host), Err(Refused::ForbiddenHost));
        assert_eq!(checked(&names, "http://localhost/", &host), Ok(()));
    }

    #[test]
    fn foreign_pages_are_refused() {
        for (header, value, allowed) in [
            ("Origin", "http://localhost:3000", true),
            ("Origin", "http://127.0.0.1", true),
            ("Origin", "http://[::1]:8080", true),
            ("Origin", "https://localhost.evil.example", false),
            ("Origin", "http://evil.example", false),
            ("Origin", "http://localhost@evil.example", false),
            ("Origin", "file://localhost", false),
            ("Origin", "null", false),
            ("Origin", "", false),
            ("Sec-Fetch-Site", "cross-site", false),
            ("Sec-Fetch-Site", "none", true),
            ("Sec-Fetch-Site", "same-origin", true),
        ] {
            for names in [Names::any(), Names::of([127, 0, 0, 1].into(), &[])] {
                let found = checked(&names, "/", &[("Host", "localhost"), (header, value)]);
                assert_eq!(found.is_ok(), allowed, "{header}: {value}");
            }
        }
    }
}
