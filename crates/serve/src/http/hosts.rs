//! Checks the `Host` and `Origin` headers against foreign web pages.
//!
//! A page whose host name resolves to this machine (DNS rebinding) sends that name as `Host`; any
//! other page is named in `Origin`.

use std::net::IpAddr;

use axum::http::request::Parts;
use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderValue, Method, header};

use super::refusal::Refusal;

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The host names that a server accepts.
#[derive(Debug, Clone)]
pub(crate) struct AllowedHosts {
    /// `None` accepts any name.
    hosts: Option<Vec<Host>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Host {
    host: String,
    /// `None` accepts any port.
    port: Option<u16>,
}

impl AllowedHosts {
    /// Accepts the loopback names, the address that the server listens on, and `extra`. A server
    /// on all addresses cannot know its names, but it requires a token, which no web page has.
    pub(crate) fn of(ip: IpAddr, extra: &[String]) -> Self {
        if ip.is_unspecified() && extra.is_empty() {
            return Self::any();
        }
        let own = ip.to_string();
        let names =
            LOOPBACK.into_iter().chain([own.as_str()]).chain(extra.iter().map(String::as_str));
        Self { hosts: Some(names.map(Host::parse).collect()) }
    }

    /// Accepts any name, for Unix sockets, which no web page can reach.
    pub(crate) fn any() -> Self {
        Self { hosts: None }
    }

    /// Checks the host name and the origin of a request.
    pub(crate) fn check(&self, request: &Parts) -> Result<(), Refusal> {
        let mut hosts = request.headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Refusal::BadHost);
        };
        let host = host.to_str().ok().and_then(|host| Authority::try_from(host).ok());
        // A request to a proxy also has a host name in its first line.
        let host = host.ok_or(Refusal::BadHost)?;
        for authority in [Some(&host), request.uri.authority()] {
            let Some(authority) = authority else { continue };
            if authority.as_str().contains('@') {
                return Err(Refusal::BadHost);
            }
            if !self.accepts(&Host::of(authority)) {
                return Err(Refusal::ForbiddenHost);
            }
        }
        check_origin(request, &Host::of(&host))
    }

    fn accepts(&self, name: &Host) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        hosts.iter().any(|it| it.host == name.host && (it.port.is_none() || it.port == name.port))
    }
}

impl Host {
    fn of(authority: &Authority) -> Self {
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        Self { host: host.to_ascii_lowercase(), port: authority.port_u16() }
    }

    fn parse(text: &str) -> Self {
        match Authority::try_from(text) {
            Ok(authority) => Self::of(&authority),
            // An IPv6 address without brackets.
            Err(_) => Self { host: text.to_ascii_lowercase(), port: None },
        }
    }
}

fn check_origin(request: &Parts, host: &Host) -> Result<(), Refusal> {
    let origins: Vec<&HeaderValue> = request.headers.get_all(header::ORIGIN).iter().collect();
    if !origins.iter().all(|origin| is_loopback(origin) || is_same(origin, host)) {
        return Err(Refusal::ForbiddenOrigin);
    }
    // Requests for images and links have no origin, but browsers mark them.
    let site = request.headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if origins.is_empty() && site == Some(b"cross-site") && !opens_the_pages(request) {
        return Err(Refusal::ForbiddenOrigin);
    }
    Ok(())
}

/// Whether a link to the pages was followed. What they load next comes from the pages.
fn opens_the_pages(request: &Parts) -> bool {
    let is = |name: &str, value: &str| request.headers.get(name).is_some_and(|it| it == value);
    request.method == Method::GET
        && request.uri.path() == "/"
        && is("sec-fetch-mode", "navigate")
        && is("sec-fetch-dest", "document")
}

/// Whether a page comes from this server, under the name that the request uses. That name is one
/// that the server accepts.
fn is_same(origin: &HeaderValue, host: &Host) -> bool {
    let uri = origin.to_str().ok().and_then(|origin| Uri::try_from(origin).ok());
    let authority = uri.as_ref().and_then(Uri::authority);
    uri.as_ref().and_then(Uri::scheme_str).is_some_and(|it| it == "http" || it == "https")
        && authority.is_some_and(|it| !it.as_str().contains('@') && Host::of(it) == *host)
}

fn is_loopback(origin: &HeaderValue) -> bool {
    let uri = origin.to_str().ok().and_then(|origin| Uri::try_from(origin).ok());
    let authority = uri.as_ref().and_then(Uri::authority);
    uri.as_ref().and_then(Uri::scheme_str) == Some("http")
        && authority.is_some_and(|authority| {
            !authority.as_str().contains('@')
                && LOOPBACK.contains(&Host::of(authority).host.as_str())
        })
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn checked(hosts: &AllowedHosts, uri: &str, headers: &[(&str, &str)]) -> Result<(), Refusal> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        hosts.check(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn only_the_servers_names_are_accepted() {
        let with = |ip: &str, extra: &[&str], host: &str| {
            let extra: Vec<String> = extra.iter().map(|name| (*name).to_owned()).collect();
            checked(&AllowedHosts::of(ip.parse().unwrap(), &extra), "/", &[("Host", host)]).is_ok()
        };
        for (ip, extra, host, known) in [
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
            assert_eq!(with(ip, extra, host), known, "{ip} {extra:?} {host}");
        }
    }

    #[test]
    fn missing_and_contradictory_hosts_are_refused() {
        let hosts = AllowedHosts::of([127, 0, 0, 1].into(), &[]);
        assert_eq!(checked(&hosts, "/", &[]), Err(Refusal::BadHost));
        let two = [("Host", "localhost"), ("Host", "evil.example")];
        assert_eq!(checked(&hosts, "/", &two), Err(Refusal::BadHost));
        let host = [("Host", "localhost")];
        assert_eq!(checked(&hosts, "http://evil.example/", &host), Err(Refusal::ForbiddenHost));
        assert_eq!(checked(&hosts, "http://localhost/", &host), Ok(()));
    }

    #[test]
    fn links_lead_to_the_pages_only() {
        let hosts = AllowedHosts::of([127, 0, 0, 1].into(), &[]);
        let link = [
            ("Host", "localhost"),
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Mode", "navigate"),
            ("Sec-Fetch-Dest", "document"),
        ];
        assert_eq!(checked(&hosts, "/", &link), Ok(()));
        for path in ["/v1/status", "/ui/app.js", "/health"] {
            assert_eq!(checked(&hosts, path, &link), Err(Refusal::ForbiddenOrigin), "{path}");
        }
        let frame = [link[0], link[1], link[2], ("Sec-Fetch-Dest", "iframe")];
        assert_eq!(checked(&hosts, "/", &frame), Err(Refusal::ForbiddenOrigin));
    }

    #[test]
    fn the_servers_own_pages_are_accepted_under_all_its_names() {
        let hosts = AllowedHosts::of([10, 1, 2, 3].into(), &["box.lan".to_owned()]);
        for (host, origin, accepted) in [
            ("box.lan:7411", "http://box.lan:7411", true),
            ("box.lan", "https://box.lan", true),
            ("10.1.2.3:7411", "http://10.1.2.3:7411", true),
            ("box.lan:7411", "http://box.lan:80", false),
            ("box.lan:7411", "http://box.lan", false),
            ("box.lan:7411", "http://other.lan:7411", false),
            ("box.lan:7411", "ftp://box.lan:7411", false),
            ("box.lan:7411", "http://a@box.lan:7411", false),
        ] {
            let found = checked(&hosts, "/", &[("Host", host), ("Origin", origin)]);
            assert_eq!(found.is_ok(), accepted, "{host} {origin}");
        }
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
            for hosts in [AllowedHosts::any(), AllowedHosts::of([127, 0, 0, 1].into(), &[])] {
                let found = checked(&hosts, "/", &[("Host", "localhost"), (header, value)]);
                assert_eq!(found.is_ok(), allowed, "{header}: {value}");
            }
        }
    }
}
