//! Recognises secret files by name.

/// Extensions of files that hold keys, certificates with keys, or passwords.
const EXTENSIONS: &[&str] = &[
    "agekey",
    "bks",
    "env",
    "jceks",
    "jks",
    "kdb",
    "kdbx",
    "keychain",
    "keystore",
    "kubeconfig",
    "p12",
    "p8",
    "pfx",
    "pkcs12",
    "ppk",
    "tfstate",
];

/// Complete file names.
const NAMES: &[&str] = &[
    ".boto",
    ".dockercfg",
    ".envrc",
    ".git-credentials",
    ".htpasswd",
    ".netrc",
    ".pgpass",
    ".pypirc",
    ".s3cfg",
    ".vault-token",
    "_netrc",
    "application_default_credentials.json",
    "credentials",
    "git-credentials",
    "htpasswd",
    "kubeconfig",
    "netrc",
    "pgpass.conf",
    "pypirc",
    "rootkey.csv",
    "wallet.dat",
];

/// Histories of shells and consoles, which may contain typed passwords.
const HISTORIES: &[&str] = &[
    "ash_history",
    "bash_history",
    "fish_history",
    "histfile",
    "irb_history",
    "ksh_history",
    "mysql_history",
    "node_repl_history",
    "psql_history",
    "python_history",
    "rediscli_history",
    "sh_history",
    "sqlite_history",
    "zsh_history",
];

/// Key types in the file names that ssh-keygen chooses.
const SSH_KEYS: &[&str] = &["rsa", "dsa", "ecdsa", "ed25519", "xmss"];

/// Marks in the names of sample files, which hold no secrets.
const SAMPLES: &[&str] =
    &["example", "examples", "sample", "samples", "template", "tmpl", "dist", "defaults", "schema"];

/// Marks in the names of files that are about keys but hold none.
const ABOUT: &[&str] = &[
    "adoc", "c", "cc", "cpp", "cs", "css", "go", "h", "hpp", "html", "java", "js", "json", "jsx",
    "kt", "lock", "md", "mdx", "php", "pub", "py", "rb", "rs", "rst", "scala", "sh", "swift",
    "toml", "ts", "tsx", "vue", "yaml", "yml",
];

/// Whether a file of this name is treated as a secret, whatever its content.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if let Some(variant) = name.strip_prefix(".env")
        && (variant.is_empty() || variant.starts_with(['.', '-', '_']))
    {
        return !is_sample(variant);
    }
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    if EXTENSIONS.contains(&extension) {
        return !is_sample(&name);
    }
    NAMES.contains(&name.as_str())
        || HISTORIES.contains(&name.trim_start_matches('.'))
        || is_ssh_key(&name, extension)
        || name.contains(".tfstate.")
        || is_cloud_key(&name, extension)
}

/// Whether a file of this name holds a key or certificate; its text tells whether the key is
/// private.
pub(super) fn is_key_name(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    ["key", "pem"].contains(&extension) && !is_sample(&name)
}

fn is_sample(name: &str) -> bool {
    name.split(['.', '-', '_']).any(|part| SAMPLES.contains(&part))
}

/// `id_ed25519`, `id_rsa.old`, `id_ed25519_work`, but not `id_rsa.pub` or `id_rsa_test.go`.
fn is_ssh_key(name: &str, extension: &str) -> bool {
    let Some(kind) = name.strip_prefix("id_") else { return false };
    let rest = SSH_KEYS.iter().find_map(|key| kind.strip_prefix(key));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '_']))
        && !ABOUT.contains(&extension)
}

/// Credential files as downloaded from the consoles of cloud services.
fn is_cloud_key(name: &str, extension: &str) -> bool {
    match extension {
        "json" => name.starts_with("client_secret_") || name.contains("firebase-adminsdk"),
        "csv" => name.ends_with("_accesskeys.csv"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_files_are_recognised_by_name() {
        let secret = [
            ".env",
            ".env.local",
            ".ENV.production",
            ".env-staging",
            ".envrc",
            "prod.env",
            "id_rsa",
            "ID_ED25519",
            "id_ed25519_work",
            "id_ecdsa_sk",
            "id_rsa.old",
            "id_dsa-2019.bak",
            "AuthKey_ABC123.p8",
            "release.keystore",
            "store.jks",
            "vault.kdbx",
            ".netrc",
            "_netrc",
            ".pgpass",
            ".pypirc",
            ".htpasswd",
            "credentials",
            ".bash_history",
            "zsh_history",
            ".psql_history",
            "terraform.tfstate",
            "terraform.tfstate.backup",
            "terraform.tfstate.1700000000.backup",
            "kubeconfig",
            "prod.kubeconfig",
            "client_secret_123.apps.googleusercontent.com.json",
            "my-app-firebase-adminsdk-x1y2z.json",
            "ann_accessKeys.csv",
        ];
        for name in secret {
            assert!(is_secret_name(name), "{name}");
        }
        let ordinary = [
            ".env.example",
            ".env.dist",
            ".environment",
            "example.env",
            "sample.key",
            "id_rsa.pub",
            "id_rsa_test.go",
            "id_token.rs",
            "id_rsakey",
            "key.rs",
            "keys.md",
            "env",
            "history",
            "credentials.rs",
            "netrc.c",
            "tfstate.go",
            "client_secret.rs",
            "cert.pem",
        ];
        for name in ordinary {
            assert!(!is_secret_name(name), "{name}");
        }
        for (path, key) in
            [("a/x.PEM", true), ("a.key", true), ("sample.key", false), ("key", false)]
        {
            assert_eq!(is_key_name(path), key, "{path}");
        }
    }
}
