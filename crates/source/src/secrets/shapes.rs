//! Secrets recognised by their context. Each check reads a bounded number of bytes on either
//! side of its keyword, or the whole text a few times.

use std::ops::Range;

use super::judge::{
    entropy, is_base64, is_base64_url, is_placeholder, is_random, is_template, is_word,
};

/// Keywords that occur beside a secret, and the check that rejects examples.
pub(super) struct Shape {
    pub(super) rule: &'static str,
    pub(super) keys: &'static [&'static str],
    pub(super) check: fn(&[u8], Range<usize>) -> bool,
    /// Whether the check reads much text; the number of such checks per text is limited.
    pub(super) costly: bool,
}

pub(super) const SHAPES: &[Shape] = &[
    Shape {
        rule: "private-key",
        keys: &["PRIVATE KEY-----", "PRIVATE KEY BLOCK-----", "PRIVATE KEY ----"],
        check: is_private_key,
        costly: false,
    },
    Shape { rule: "putty-key", keys: &["PuTTY-User-Key-File-"], check: is_putty_key, costly: true },
    Shape {
        rule: "google-service-account",
        keys: &["\"private_key_id\""],
        check: is_service_account,
        costly: true,
    },
    Shape {
        rule: "azure-storage-key",
        keys: &["AccountKey=", "SharedAccessKey="],
        check: |bytes, at| is_long_base64(value_after(bytes, at.end, is_base64), 40),
        costly: false,
    },
    Shape { rule: "azure-client-secret", keys: &["Q~"], check: is_azure_secret, costly: false },
    Shape {
        rule: "azure-signature",
        keys: &["&sig="],
        check: |bytes, at| {
            let signed = |byte: u8| is_base64(byte) || byte == b'%';
            is_long_base64(value_after(bytes, at.end, signed), 43)
        },
        costly: false,
    },
    Shape { rule: "kubeconfig", keys: &["client-key-data"], check: is_client_key, costly: false },
    Shape {
        rule: "kubeconfig",
        keys: &["kind: Config\n", "kind: Config\r"],
        check: is_kubeconfig,
        costly: true,
    },
    Shape {
        rule: "kubernetes-secret",
        keys: &["kind: Secret\n"],
        check: is_kubernetes_secret,
        costly: true,
    },
    Shape {
        rule: "terraform-state",
        keys: &["\"terraform_version\""],
        check: is_state,
        costly: true,
    },
    Shape {
        rule: "terraform-cloud-token",
        keys: &[".atlasv1."],
        check: is_atlas_token,
        costly: false,
    },
    Shape { rule: "docker-credentials", keys: &["\"auths\""], check: is_docker_auth, costly: true },
    Shape {
        rule: "npm-token",
        keys: &["_authToken", "npmAuthToken", ":_auth", ":_password"],
        check: is_npm_auth,
        costly: false,
    },
    Shape {
        rule: "aws-secret-key",
        keys: &[
            "aws_secret_access_key",
            "AWS_SECRET_ACCESS_KEY",
            "aws_secret_key",
            "AWS_SECRET_KEY",
            "SecretAccessKey",
            "secretAccessKey",
            "awsSecretKey",
        ],
        check: is_aws_secret,
        costly: false,
    },
    Shape { rule: "password-in-url", keys: &["://"], check: is_url_with_password, costly: false },
    Shape {
        rule: "connection-string",
        keys: &["Password=", "password=", "PWD=", "Pwd=", "pwd="],
        check: is_connection_string,
        costly: false,
    },
    Shape { rule: "json-web-token", keys: &["eyJ"], check: is_web_token, costly: false },
    Shape { rule: "json-web-key", keys: &["\"kty\""], check: is_web_key, costly: true },
    Shape {
        rule: "webhook",
        keys: &["hooks.slack.com/services/", "discord.com/api/webhooks/"],
        check: is_webhook,
        costly: false,
    },
    Shape {
        rule: "webhook",
        keys: &["discordapp.com/api/webhooks/", ".webhook.office.com/webhookb2/"],
        check: is_webhook,
        costly: false,
    },
    Shape { rule: "telegram-token", keys: &[":AA"], check: is_telegram_token, costly: false },
    Shape { rule: "mailchimp-key", keys: &["-us"], check: is_mailchimp_key, costly: false },
    Shape {
        rule: "wireguard-key",
        keys: &["PrivateKey = ", "PrivateKey="],
        check: is_wireguard,
        costly: false,
    },
    Shape {
        rule: "assigned-secret",
        keys: &[
            "api_key",
            "apiKey",
            "API_KEY",
            "apikey",
            "api-key",
            "ApiKey",
            "api_secret",
            "apiSecret",
            "API_SECRET",
            "auth_token",
            "authToken",
            "AUTH_TOKEN",
            "access_token",
            "accessToken",
            "ACCESS_TOKEN",
            "client_secret",
            "clientSecret",
            "CLIENT_SECRET",
            "ClientSecret",
            "secret_key",
            "secretKey",
            "SECRET_KEY",
            "private_token",
            "PRIVATE_TOKEN",
            "account_key",
            "ACCOUNT_KEY",
            "_PASSWORD",
            "_password",
        ],
        check: is_assigned_secret,
        costly: false,
    },
];

/// How many bytes a check reads beyond its keyword.
const NEAR: usize = 4 << 10;

/// Requires key material after the header: code that handles keys contains only the header.
fn is_private_key(bytes: &[u8], at: Range<usize>) -> bool {
    let before = &bytes[at.start.saturating_sub(40)..at.start];
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    if !contains(line, b"BEGIN ") {
        return false;
    }
    let after = near(bytes, at.end);
    let end = find(after, b"-----").or_else(|| find(after, b"---- END")).unwrap_or(after.len());
    let mut material = Vec::new();
    for run in after[..end].split(|byte| !is_base64(*byte)) {
        // In a string literal, the letter of an escaped line end precedes the next line.
        if run.len() >= 20 {
            material.extend_from_slice(run);
        }
    }
    material.len() >= 48 && entropy(&material) >= 3.3 && !is_drawn(&material)
}

/// Whether a key file holds only public data: public keys, certificates, certificate
/// requests, parameters.
pub(super) fn is_public_key(bytes: &[u8]) -> bool {
    let opens = |line: &[u8]| {
        let line = line.trim_ascii();
        line.starts_with(b"-----BEGIN ") || line.starts_with(b"ssh-")
    };
    let mut headers = bytes.split(|byte| *byte == b'\n').filter(|line| opens(line)).peekable();
    let blank = bytes.trim_ascii().is_empty();
    blank || headers.peek().is_some() && headers.all(|line| !contains(line, b"PRIVATE"))
}

/// Whether key material was made up by hand: a few letters repeated.
fn is_drawn(material: &[u8]) -> bool {
    let mut seen = [false; 256];
    material.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    seen.into_iter().filter(|seen| *seen).count() < 16
}

fn is_putty_key(bytes: &[u8], at: Range<usize>) -> bool {
    contains(near(bytes, at.end), b"Private-Lines: ")
}

fn is_service_account(bytes: &[u8], at: Range<usize>) -> bool {
    let around = &bytes[at.start.saturating_sub(NEAR)..(at.end + NEAR).min(bytes.len())];
    let id = assigned(bytes, at.end).unwrap_or_default();
    let key = find(around, b"\"private_key\"").map(|key| &around[key + 13..]);
    let opens = key.is_some_and(|key| contains(&key[..key.len().min(64)], b"BEGIN "));
    contains(around, b"service_account") && id.len() >= 16 && opens && !is_placeholder(id)
}

fn is_azure_secret(bytes: &[u8], at: Range<usize>) -> bool {
    let letter = |byte: u8| is_word(byte) || b"~.-".contains(&byte);
    let Some(start) = at.start.checked_sub(4) else { return false };
    let edge = start == 0 || !letter(bytes[start - 1]);
    let head = &bytes[start..at.start];
    let rest = value_after(bytes, at.end, letter);
    edge && head[3].is_ascii_digit()
        && head.iter().all(|byte| letter(*byte))
        && (31..=34).contains(&rest.len())
        && is_random(rest, 3.0)
}

fn is_client_key(bytes: &[u8], at: Range<usize>) -> bool {
    assigned(bytes, at.end).is_some_and(|value| is_long_base64(value, 40))
}

fn is_kubeconfig(bytes: &[u8], _: Range<usize>) -> bool {
    let given = |key: &[u8]| {
        let value = find(bytes, key).and_then(|at| assigned(bytes, at + key.len() - 1));
        value.is_some_and(|value| value.len() >= 8 && !is_placeholder(value))
    };
    contains(bytes, b"users:")
        && (given(b" token:") || given(b" password:") || given(b" client-key-data:"))
}

/// A manifest with values in it; templates have none.
fn is_kubernetes_secret(bytes: &[u8], at: Range<usize>) -> bool {
    let from = find_last(&bytes[..at.start], b"\n---").unwrap_or(0);
    let to = find(&bytes[at.end..], b"\n---").map_or(bytes.len(), |end| at.end + end);
    let document = &bytes[from..to.min(from + (64 << 10))];
    let Some(data) = ["\ndata:", "\nstringData:"]
        .iter()
        .find_map(|key| find(document, key.as_bytes()).map(|at| &document[at + key.len()..]))
    else {
        return false;
    };
    let lines = data.split(|byte| *byte == b'\n').skip(1);
    let mut values = lines
        .take_while(|line| line.starts_with(b"  ") || line.is_empty())
        .filter_map(|line| line.iter().position(|byte| *byte == b':').map(|at| &line[at + 1..]));
    values.any(|value| {
        let value = value.trim_ascii();
        value.len() >= 8 && !is_template(value) && !is_placeholder(value) && !is_plain(value)
    })
}

/// Whether a value is words, as in a comment or a name.
fn is_plain(value: &[u8]) -> bool {
    value.contains(&b' ') || !value.iter().any(u8::is_ascii_digit) && !value.ends_with(b"=")
}

fn is_state(bytes: &[u8], _: Range<usize>) -> bool {
    contains(bytes, b"\"lineage\"")
        && contains(bytes, b"\"serial\"")
        && contains(bytes, b"\"resources\"")
}

fn is_atlas_token(bytes: &[u8], at: Range<usize>) -> bool {
    let head = value_before(bytes, at.start, |byte| byte.is_ascii_alphanumeric());
    let rest = value_after(bytes, at.end, |byte| is_base64_url(byte) || byte == b'=');
    head.len() == 14 && (58..=72).contains(&rest.len()) && is_random(rest, 3.5)
}

fn is_docker_auth(bytes: &[u8], at: Range<usize>) -> bool {
    let after = near(bytes, at.end);
    let value = find(after, b"\"auth\"").and_then(|key| assigned(after, key + 6));
    value.is_some_and(|value| value.len() >= 12 && is_random(value, 3.0))
}

fn is_npm_auth(bytes: &[u8], at: Range<usize>) -> bool {
    let value = assigned(bytes, at.end);
    value.is_some_and(|value| value.len() >= 16 && is_random(value, 3.0))
}

fn is_aws_secret(bytes: &[u8], at: Range<usize>) -> bool {
    assigned(bytes, at.end).is_some_and(|value| value.len() == 40 && is_random(value, 4.0))
}

/// Schemes of databases and queues, where any password in the URL counts; in other URLs it
/// must look random.
const SERVERS: &[&str] = &[
    "postgres",
    "mysql",
    "mariadb",
    "mongodb",
    "redis",
    "amqp",
    "mssql",
    "sqlserver",
    "oracle",
    "clickhouse",
    "cockroach",
    "nats",
    "kafka",
    "ldap",
];

fn is_url_with_password(bytes: &[u8], at: Range<usize>) -> bool {
    let scheme =
        value_before(bytes, at.start, |it| it.is_ascii_alphanumeric() || b"+.".contains(&it));
    let part = |byte: u8| byte.is_ascii_graphic() && !b"/?#\"'`<>\\, ".contains(&byte);
    let authority = value_after(bytes, at.end, part);
    let Some(host_at) = authority.iter().rposition(|byte| *byte == b'@') else { return false };
    let (user, host) = (&authority[..host_at], &authority[host_at + 1..]);
    let Some(colon) = user.iter().position(|byte| *byte == b':') else { return false };
    let password = &user[colon + 1..];
    if is_local(host) || is_template(user) || is_placeholder(password) || is_common(password) {
        return false;
    }
    let database = SERVERS.iter().any(|name| scheme.starts_with(name.as_bytes()));
    match database {
        true => password.len() >= 6 && password.iter().any(|it| !it.is_ascii_alphabetic()),
        false => password.len() >= 16 && is_random(password, 3.5),
    }
}

fn is_connection_string(bytes: &[u8], at: Range<usize>) -> bool {
    let start = bytes[..at.start].iter().rev().take(300).take_while(|it| **it != b'\n').count();
    let before = bytes[at.start - start..at.start].to_ascii_lowercase();
    let value =
        value_after(bytes, at.end, |it| it.is_ascii_graphic() && !b";\"'`<>\\,&".contains(&it));
    let Some(server) = ["server=", "data source=", "host=", "addr="]
        .iter()
        .find_map(|key| find(&before, key.as_bytes()).map(|at| &before[at + key.len()..]))
    else {
        return false;
    };
    let end = server.iter().position(|it| *it == b';').unwrap_or(0);
    let mixed = value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic);
    end > 0
        && !is_local(server[..end].strip_prefix(b"tcp:").unwrap_or(&server[..end]))
        && value.len() >= 8
        && mixed
        && !is_template(value)
        && !is_placeholder(value)
        && !is_common(value)
}

/// Whether a host is local, a name in a test network, or an example.
fn is_local(host: &[u8]) -> bool {
    let name = host.split(|byte| *byte == b':').next().unwrap_or_default().to_ascii_lowercase();
    let dotted = name.contains(&b'.');
    let local = [&b"localhost"[..], b"127.", b"0.0.0.0", b"[::1]", b"10.0.0.", b"192.168.", b"."]
        .iter()
        .any(|it| name.starts_with(it));
    let words = [&b"example"[..], b"test", b"invalid", b"yourdomain", b"your-", b"host."];
    !dotted || local || is_template(&name) || words.iter().any(|it| contains(&name, it))
}

/// Whether a password is a common one in documentation and tests.
fn is_common(password: &[u8]) -> bool {
    const COMMON: &[&str] = &[
        "password", "passwd", "pass", "secret", "postgres", "mysql", "root", "admin", "guest",
        "hunter2", "test", "user", "mypass", "pwd", "123456", "qwerty", "letmein", "hello",
    ];
    let lower = password.to_ascii_lowercase();
    let word: Vec<u8> = lower
        .iter()
        .map(|byte| match byte {
            b'0' => b'o',
            b'@' | b'4' => b'a',
            b'$' | b'5' => b's',
            byte => *byte,
        })
        .collect();
    let rest = word.len().saturating_sub(5);
    COMMON.iter().any(|common| {
        let common = common.as_bytes();
        (word.starts_with(common) || lower.starts_with(common)) && common.len() >= rest
    })
}

/// Three parts separated by dots, the first of which starts a JSON object.
fn is_web_token(bytes: &[u8], at: Range<usize>) -> bool {
    let part = |byte: u8| is_base64_url(byte) || byte == b'.';
    if at.start > 0 && part(bytes[at.start - 1]) {
        return false;
    }
    let token = value_after(bytes, at.start, part);
    let mut parts = token.split(|byte| *byte == b'.');
    let (Some(head), Some(claims), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let signed = head.len() >= 16 && claims.starts_with(b"eyJ") && signature.len() >= 40;
    signed && is_random(signature, 3.5) && is_about_somebody(&decode(claims))
}

/// Whether the claims of a token name a real subject, not that of an example.
fn is_about_somebody(claims: &[u8]) -> bool {
    const EXAMPLES: &[&str] = &["1234567890", "John Doe", "johndoe", "example", "foobar"];
    const CLAIMS: &[&str] = &["\"iss\"", "\"sub\"", "\"aud\"", "\"role\"", "\"scope"];
    let has = |word: &&str| contains(claims, word.as_bytes());
    claims.len() >= 32 && CLAIMS.iter().any(has) && !EXAMPLES.iter().any(has)
}

/// Decodes the longest valid prefix of URL-safe base64.
fn decode(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let (mut bits, mut held) = (0_u32, 0);
    for letter in text {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'-' | b'+' => 62,
            b'_' | b'/' => 63,
            _ => break,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xFF) as u8);
        }
    }
    bytes
}

fn is_web_key(bytes: &[u8], at: Range<usize>) -> bool {
    let around = &bytes[at.start.saturating_sub(NEAR)..(at.end + NEAR).min(bytes.len())];
    let private = find(around, b"\"d\"").and_then(|key| assigned(around, key + 3));
    private.is_some_and(|value| value.len() >= 40 && is_random(value, 3.5))
}

fn is_webhook(bytes: &[u8], at: Range<usize>) -> bool {
    let path = value_after(bytes, at.end, |it| is_base64_url(it) || b"/@".contains(&it));
    path.len() >= 40 && is_random(path, 3.5)
}

fn is_telegram_token(bytes: &[u8], at: Range<usize>) -> bool {
    let bot = value_before(bytes, at.start, |it| it.is_ascii_digit());
    let rest = value_after(bytes, at.end, is_base64_url);
    (8..=10).contains(&bot.len()) && rest.len() == 33 && is_random(rest, 3.5)
}

fn is_mailchimp_key(bytes: &[u8], at: Range<usize>) -> bool {
    let key = value_before(bytes, at.start, is_word);
    let center = value_after(bytes, at.end, is_word);
    let digits = center.len() <= 2 && center.iter().all(u8::is_ascii_digit);
    let hex = key.iter().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(it));
    key.len() == 32 && hex && !center.is_empty() && digits && is_random(key, 2.6)
}

fn is_wireguard(bytes: &[u8], at: Range<usize>) -> bool {
    let value = value_after(bytes, at.end, is_base64);
    value.len() == 44 && value.ends_with(b"=") && is_random(value, 4.0)
}

/// A random-looking literal assigned to a name that means a secret.
fn is_assigned_secret(bytes: &[u8], at: Range<usize>) -> bool {
    let Some(value) = assigned(bytes, at.end) else { return false };
    let has = |kind: fn(&u8) -> bool| value.iter().filter(|byte| kind(byte)).count() >= 3;
    let mixed =
        has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    let plain = value.iter().all(|byte| is_base64(*byte) || b"-_".contains(byte));
    (24..=128).contains(&value.len()) && plain && mixed && is_random(value, 4.2)
}

fn is_long_base64(value: &[u8], least: usize) -> bool {
    value.len() >= least && is_random(value, 3.5)
}

/// The value assigned to a key: `key = "value"`, `"key": "value"`, `key => 'value'`.
fn assigned(bytes: &[u8], after_key: usize) -> Option<&[u8]> {
    let rest = near(bytes, after_key);
    let skip = |rest: &mut &[u8], some: &[u8], most: usize| {
        let count = rest.iter().take(most).take_while(|byte| some.contains(byte)).count();
        *rest = &rest[count..];
        count
    };
    let mut rest = rest;
    skip(&mut rest, b"\"'\\]` \t", 6);
    if skip(&mut rest, b"=:>", 3) == 0 {
        return None;
    }
    skip(&mut rest, b"\"'\\` \t", 6);
    let part = |byte: &u8| byte.is_ascii_graphic() && !b"\"'`\\,;<>(){}[]$".contains(byte);
    let length = rest.iter().take_while(|byte| part(byte)).count();
    // A call or an index expression is not a literal.
    let ends = rest.get(length).is_none_or(|byte| !b"([{$<".contains(byte));
    (length > 0 && ends).then(|| &rest[..length])
}

fn near(bytes: &[u8], from: usize) -> &[u8] {
    &bytes[from.min(bytes.len())..(from + NEAR).min(bytes.len())]
}

fn value_after(bytes: &[u8], from: usize, part: impl Fn(u8) -> bool) -> &[u8] {
    let rest = near(bytes, from);
    &rest[..rest.iter().take_while(|byte| part(**byte)).count()]
}

fn value_before(bytes: &[u8], to: usize, part: impl Fn(u8) -> bool) -> &[u8] {
    let count = bytes[..to].iter().rev().take(64).take_while(|byte| part(**byte)).count();
    &bytes[to - count..to]
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    find(bytes, part).is_some()
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|it| it == part)
}

fn find_last(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).rposition(|it| it == part)
}
