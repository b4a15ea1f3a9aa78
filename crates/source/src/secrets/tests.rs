//! Samples are assembled from pieces, so that scanners find no secret in this file.

use super::*;

/// Pseudo-random letters, the same in every run.
fn random(seed: u64, letters: &str, count: usize) -> String {
    let letters: Vec<char> = letters.chars().collect();
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        letters[(state >> 33) as usize % letters.len()]
    };
    (0..count).map(|_| next()).collect()
}

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const CAPITALS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const HEX: &str = "0123456789abcdef";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn alnum(seed: u64, count: usize) -> String {
    random(seed, ALNUM, count)
}

fn hex(seed: u64, count: usize) -> String {
    random(seed, HEX, count)
}

/// A block of key material under such a header.
fn block(kind: &str, line_end: &str) -> String {
    let lines: Vec<String> = (1..6).map(|seed| random(seed, BASE64, 64)).collect();
    let (dashes, body) = ("-".repeat(5), lines.join(line_end));
    format!("{dashes}BEGIN {kind}{dashes}{line_end}{body}{line_end}{dashes}END {kind}{dashes}")
}

fn web_token(claims: &str) -> String {
    let url = |text: &str| {
        let mut encoded = String::new();
        for three in text.as_bytes().chunks(3) {
            let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
                << (8 * (3 - three.len()));
            for at in 0..=three.len() {
                let letter = (bits >> (18 - 6 * at) & 63) as usize;
                encoded.push(char::from(BASE64.as_bytes()[letter]));
            }
        }
        encoded.replace('+', "-").replace('/', "_")
    };
    let head = url(r#"{"alg":"RS256","typ":"JWT"}"#);
    format!("{head}.{}.{}", url(claims), alnum(7, 86))
}

/// Rule, path and text of what must be found.
fn planted() -> Vec<(&'static str, &'static str, String)> {
    let mut samples = tokens();
    samples.extend(keys());
    samples.extend(settings());
    samples
}

fn tokens() -> Vec<(&'static str, &'static str, String)> {
    let quoted = |name: &str, token: String| format!("import os\n\n{name} = \"{token}\"\n");
    vec![
        ("aws-access-key", "a.py", quoted("KEY", format!("AK{}{}", "IA", random(1, CAPITALS, 16)))),
        ("github-token", "a.rs", format!("// gh{}_{}\n", 'p', alnum(2, 36))),
        ("github-token", "a.js", quoted("t", format!("github_{}_{}", "pat", alnum(3, 82)))),
        ("gitlab-token", ".gitlab-ci.yml", format!("token: gl{}-{}\n", "pat", alnum(4, 20))),
        ("slack-token", "bot.py", quoted("T", format!("xo{}-123456789012-{}", "xb", alnum(5, 24)))),
        ("stripe-key", "pay.rb", quoted("k", format!("sk_{}_{}", "live", alnum(6, 24)))),
        ("google-api-key", "map.js", quoted("k", format!("AI{}{}", "za", alnum(7, 35)))),
        ("google-oauth-token", "a.sh", format!("TOKEN=ya{}.{}\n", 29, alnum(8, 60))),
        ("npm-token", "ci.yml", format!("env: npm{}{}\n", '_', alnum(9, 36))),
        (
            "pypi-token",
            "up.sh",
            format!("twine upload -p py{}-AgEIcHlwaS5vcmc{}", "pi", alnum(10, 80)),
        ),
        ("digitalocean-token", "main.tf", quoted("t", format!("dop_{}_{}", "v1", hex(11, 64)))),
        (
            "sendgrid-key",
            "mail.go",
            format!("key := `S{}.{}.{}`", 'G', alnum(12, 22), alnum(13, 43)),
        ),
        ("huggingface-token", "nb.py", quoted("hf", format!("h{}_{}", 'f', alnum(14, 34)))),
        ("anthropic-key", "x.ts", quoted("k", format!("sk-{}-api03-{}AA", "ant", alnum(15, 93)))),
        ("openai-key", "x.py", quoted("k", format!("sk-{}-{}", "proj", alnum(16, 100)))),
        ("openai-key", "y.py", quoted("k", format!("s{}-{}", 'k', alnum(17, 48)))),
        ("vault-token", "v.sh", format!("export VAULT_TOKEN=h{}.{}", "vs", alnum(18, 95))),
        ("telegram-token", "t.py", quoted("bot", format!("1234567890:A{}{}", 'A', alnum(19, 33)))),
        (
            "webhook",
            "n.yml",
            format!(
                "url: https://hooks.{}.com/services/T0{}/B0{}/{}",
                "slack",
                hex(20, 8).to_uppercase(),
                hex(21, 8).to_uppercase(),
                alnum(22, 24)
            ),
        ),
        (
            "json-web-token",
            "k8s.txt",
            format!(
                "token: {}\n",
                web_token(
                    r#"{"iss":"kubernetes/serviceaccount","sub":"system:serviceaccount:prod:deploy"}"#
                )
            ),
        ),
        ("docker-token", "d.sh", format!("docker login -p dc{}_pat_{}", "kr", alnum(23, 27))),
        (
            "terraform-cloud-token",
            "t.tf",
            quoted("token", format!("{}.at{}.{}", alnum(24, 14), "lasv1", alnum(25, 67))),
        ),
        ("shopify-token", "s.rb", quoted("t", format!("shp{}_{}", "at", hex(26, 32)))),
        ("twilio-key", "t.js", quoted("t", format!("S{}{}", 'K', hex(27, 32)))),
        ("mailchimp-key", "m.js", quoted("t", format!("{}-u{}", hex(28, 32), "s12"))),
    ]
}

fn keys() -> Vec<(&'static str, &'static str, String)> {
    let private = format!("{} {}", "PRIVATE", "KEY");
    let of = |kind: &str| format!("{kind} {private}");
    let escaped = block(&private, "\\n");
    vec![
        ("private-key", "notes.txt", block(&of("RSA"), "\n")),
        ("private-key", "deploy.txt", block(&of("OPENSSH"), "\n")),
        ("private-key", "enc.txt", block(&of("ENCRYPTED"), "\r\n")),
        ("private-key", "sign.asc", block(&format!("PGP {private} BLOCK"), "\n")),
        ("private-key", "key.rs", format!("const KEY: &str = \"{}\";", block(&of("EC"), "\\n"))),
        ("key-file", "tls/server.key", alnum(30, 40)),
        ("key-file", "tls/server.pem", block(&private, "\n")),
        (
            "google-service-account",
            "gcp.json",
            format!(
                "{{\"type\": \"service_account\", \"private_key_id\": \"{}\", \"private_key\": \"{escaped}\"}}",
                hex(31, 40)
            ),
        ),
        (
            "google-service-account",
            "short.json",
            format!(
                "{{\"type\": \"service_account\", \"private_key_id\": \"{}\", \"private_key\": \"{}BEGIN \"}}",
                hex(32, 40),
                "-".repeat(5)
            ),
        ),
        (
            "age-secret-key",
            "age.txt",
            format!("AGE-SECRET-{}-1{}", "KEY", random(33, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
        ),
        (
            "wireguard-key",
            "wg0.conf",
            format!("[Interface]\nPrivateKey = {}=\n", random(34, BASE64, 43)),
        ),
        (
            "putty-key",
            "k.txt",
            format!("PuTTY-User-Key-File-{}: ssh-ed25519\nPrivate-Lines: 1\n", 3),
        ),
        (
            "json-web-key",
            "jwk.json",
            format!("{{\"kty\":\"EC\",\"crv\":\"P-256\",\"d\":\"{}\"}}", alnum(35, 43)),
        ),
    ]
}

fn settings() -> Vec<(&'static str, &'static str, String)> {
    let azure = random(40, BASE64, 86);
    vec![
        ("aws-secret-key", "conf.ini", format!("aws_secret_access_{} = {}\n", "key", random(41, BASE64, 40))),
        ("azure-storage-key", "app.config", format!("DefaultEndpointsProtocol=https;Account{}={azure}==;", "Key")),
        ("azure-client-secret", "az.py", format!("s = '{}8Q{}{}'", alnum(42, 3), '~', alnum(43, 34))),
        ("kubeconfig", "cluster.yaml", format!("users:\n- user:\n    client-{}-data: {azure}\n", "key")),
        ("kubeconfig", "conf.yaml", format!("apiVersion: v1\nkind: Config\nusers:\n- user:\n    token: {}\n", alnum(44, 30))),
        ("kubernetes-secret", "k.yaml", format!("apiVersion: v1\nkind: Secret\ndata:\n  password: {}==\n", random(45, BASE64, 22))),
        ("terraform-state", "state.json", "{\"version\": 4, \"terraform_version\": \"1.5\", \"serial\": 3, \"lineage\": \"x\", \"resources\": []}".to_owned()),
        ("docker-credentials", "config.json", format!("{{\"auths\": {{\"r.io\": {{\"auth\": \"{}\"}}}}}}", random(46, BASE64, 32))),
        ("npm-token", "npmrc", format!("//registry.npmjs.org/:_auth{}={}\n", "Token", alnum(47, 36))),
        ("password-in-url", "db.py", format!("URL = 'postgres{}app:{}@db.acme.io/x'", "://", alnum(48, 12))),
        ("password-in-url", "git.sh", format!("git clone https{}bot:{}@git.acme.io/x", "://", alnum(49, 32))),
        ("connection-string", "a.config", format!("Server=sql.acme.io;User Id=app;{}={};", "Password", alnum(50, 14))),
        ("assigned-secret", "c.yml", format!("client_{}: {}\n", "secret", alnum(51, 40))),
    ]
}

#[test]
fn planted_secrets_are_found() {
    let secrets = Secrets::new();
    let samples = planted();
    assert!(samples.len() >= 36, "{}", samples.len());
    for (rule, path, text) in samples {
        let found = secrets.find(path, &text);
        assert_eq!(found.map(|it| it.rule), Some(rule), "{path}: {text}");
        let problem = found.unwrap().problem(false);
        assert!(is_secret_problem(&problem) && problem.len() < 80, "{problem}");
        let shifted = format!("// one\n// two\n{text}");
        let found = secrets.find(path, &shifted).unwrap();
        assert!(found.line > 2 || found.rule == "key-file", "{found:?}");
    }
}

#[test]
fn examples_and_code_are_not_secrets() {
    let secrets = Secrets::new();
    let key = format!("{} {}", "PRIVATE", "KEY");
    let dashes = "-".repeat(5);
    let table = [
        ("aws.md", format!("AK{}IOSFODNN7EXAMPLE", "IA")),
        ("a.md", format!("gh{}_{}", 'p', "x".repeat(36))),
        ("a.md", "export TOKEN=ghp_your-token-here".to_owned()),
        ("a.md", format!("gh{}_{}", 'p', "0".repeat(36))),
        (
            "a.rs",
            format!("if line.starts_with(\"{dashes}BEGIN {key}{dashes}\") {{ return true; }}"),
        ),
        ("a.md", format!("{dashes}BEGIN {key}{dashes}\n...\n{dashes}END {key}{dashes}")),
        ("cert.pem", block("CERTIFICATE", "\n")),
        ("signing.key", block("PGP PUBLIC KEY BLOCK", "\n")),
        ("a.py", "api_key = os.environ[\"SERVICE_API_KEY_FOR_PRODUCTION1\"]".to_owned()),
        ("a.py", "DATABASE_URL = 'postgresql://user:password@localhost/db'".to_owned()),
        ("a.py", "url = f'postgres://{user}:{password}@db.acme.io/x'".to_owned()),
        ("a.md", "mysql://scott:tiger@db.example.com/x".to_owned()),
        ("a.cs", "\"Server=localhost;User Id=sa;Password=Passw0rd12\"".to_owned()),
        ("a.yaml", "kind: Secret\ndata:\n  password: {{ .Values.password | b64enc }}\n".to_owned()),
        ("a.js", format!("const t = '{}'", web_token(r#"{"sub":"1234567890","name":"John Doe"}"#))),
        ("a.py", format!("SECRET_KEY = \"{}\"", hex(60, 64))),
        ("a.rs", format!("let hash = \"{}\"; // sha256", hex(61, 64))),
        ("a.c", "int SKIP_TO_NEXT_AVAILABLE_RECORD_0123456789;".to_owned()),
        ("a.json", format!("\"integrity\": \"sha512-{}==\"", random(62, BASE64, 86))),
        ("a.rs", format!("let t = \"gh{}_{}\"; // gitleaks:allow", 'p', alnum(63, 36))),
    ];
    for (path, text) in table {
        assert_eq!(secrets.find(path, &text), None, "{path}: {text}");
    }
}

/// Worst-case texts, where every check reads as far as it can: the cost stays linear.
#[test]
fn worst_case_texts_are_scanned_quickly() {
    let secrets = Secrets::new();
    let key = format!("BEGIN {} {}-----", "PRIVATE", "KEY");
    let patterns = [
        key.as_str(),
        "kind: Config\n",
        "kind: Secret\n",
        "\"terraform_version\"",
        "\"kty\"",
        "sk-ant-",
        "eyJ.",
        "://",
        "Password=",
        "-us",
        "api_key=",
    ];
    for pattern in patterns {
        let text = pattern.repeat((64 << 10) / pattern.len());
        assert_eq!(secrets.find("a.txt", &text), None, "{pattern}");
    }
}
