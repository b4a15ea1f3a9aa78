//! Calls the user's URL for an alert.

use std::pin::pin;
use std::str::FromStr;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, Uri, header};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use isolith_types::{Code, Failure};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::alert::Alert;

/// How long a call may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// An `http://` URL that alerts are posted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The value of the `Host` header.
    authority: String,
    /// Without the brackets of an IPv6 address.
    host: String,
    port: u16,
    /// Path and query.
    path: String,
}

impl FromStr for Webhook {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let refused = |problem: &str, hint: &str| {
            let message = format!("the URL for alerts cannot be used: {problem}");
            Failure::new(Code::Usage, message).with_hint(hint)
        };
        let example = "pass a URL such as http://127.0.0.1:9000/alerts";
        let url: Uri = text.parse().map_err(|_| refused("it is not a URL", example))?;
        let https = "for HTTPS, let a program call it: --alert-command 'curl --fail --silent \
                     --header Content-Type:application/json --data @- URL'";
        match url.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(refused("HTTPS is not supported", https)),
            _ => return Err(refused("it does not begin with http://", example)),
        }
        let authority = url.authority().ok_or_else(|| refused("it names no host", example))?;
        if authority.as_str().contains('@') {
            return Err(refused("it contains a user name", https));
        }
        let host = authority.host();
        let host = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() {
            return Err(refused("it names no host", example));
        }
        Ok(Self {
            authority: authority.to_string(),
            host: host.to_owned(),
            port: authority.port_u16().unwrap_or(80),
            path: url.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        })
    }
}

impl Webhook {
    /// Posts an alert as JSON. Redirects are not followed.
    ///
    /// The error says why it may not have been delivered; it does not name the path, which may be
    /// a secret.
    pub(super) async fn post(&self, alert: &Alert) -> Result<(), String> {
        let called = timeout(DEADLINE, self.call(alert.json())).await;
        let failed = match called {
            Ok(Ok(status)) if (200..300).contains(&status) => return Ok(()),
            Ok(Ok(status)) => format!("status {status}"),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", DEADLINE.as_secs()),
        };
        Err(format!("{}: {failed}", self.authority))
    }

    /// The status of the answer, whose body is not read.
    async fn call(&self, json: String) -> Result<u16, Box<dyn std::error::Error + Send + Sync>> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(&self.path)
            .header(header::HOST, &self.authority)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, concat!("isolith/", env!("CARGO_PKG_VERSION")))
            .header(header::CONNECTION, "close")
            .body(Body::from(json))?;
        let mut answer = pin!(sender.send_request(request));
        let answer = tokio::select! {
            answer = &mut answer => answer,
            ended = connection => {
                ended?;
                // It has arrived, or never will.
                answer.await
            }
        };
        Ok(answer?.status().as_u16())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::super::alert::Cause;
    use super::*;

    #[test]
    fn only_plain_http_is_accepted() {
        let webhook: Webhook = "http://[::1]:9000/a?b=c".parse().unwrap();
        assert_eq!((webhook.host.as_str(), webhook.port), ("::1", 9000));
        assert_eq!(webhook.path, "/a?b=c");
        let webhook: Webhook = "http://alerts.lan".parse().unwrap();
        assert_eq!((webhook.port, webhook.path.as_str()), (80, "/"));
        for (text, word) in [
            ("https://alerts.lan/", "HTTPS"),
            ("ftp://alerts.lan/", "http://"),
            ("alerts.lan", "http://"),
            ("http://me:secret@alerts.lan/", "user name"),
            ("", "URL"),
            ("http://", "URL"),
        ] {
            let failure = text.parse::<Webhook>().unwrap_err();
            assert_eq!(failure.code, Code::Usage);
            assert!(failure.message.contains(word), "{text}: {failure}");
        }
    }

    /// Answers one call; returns what it received, and what the call came to.
    async fn called(answer: &'static str) -> (String, Result<(), String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/secret-path", listener.local_addr().unwrap());
        let webhook: Webhook = url.parse().unwrap();
        let alert = Alert::new(Cause::FailureRate, "user", "/s".into(), None, "too many");
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = Vec::new();
            while !bytes.ends_with(b"}\n") {
                assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0);
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8(bytes).unwrap()
        };
        tokio::join!(serve, webhook.post(&alert))
    }

    #[tokio::test]
    async fn an_alert_is_posted_as_json() {
        let (request, posted) = called("HTTP/1.1 204 No Content\r\n\r\n").await;
        assert_eq!(posted, Ok(()));
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /secret-path HTTP/1.1\r\n"), "{head}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["cause"], "failure_rate");
    }

    #[tokio::test]
    async fn failures_are_reported_without_the_path() {
        for answer in ["HTTP/1.1 500 Oops\r\n\r\n", "HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", ""]
        {
            let (_, posted) = called(answer).await;
            let error = posted.unwrap_err();
            assert!(error.starts_with("127.0.0.1:") && !error.contains("secret"), "{error}");
        }
        let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let webhook: Webhook = format!("http://{nobody}").parse().unwrap();
        let alert = Alert::new(Cause::FailureRate, "user", "/s".into(), None, "too many");
        assert!(webhook.post(&alert).await.is_err());
    }
}
