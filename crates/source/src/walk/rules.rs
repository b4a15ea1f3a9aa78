//! What names tell about files.

/// A file of further ignore rules, as in `.gitignore`.
pub const IGNORE_FILE: &str = ".isolithignore";

/// Whether a file of this name holds a private key or passwords.
pub(super) fn is_secret(name: &str) -> bool {
    const EXTENSIONS: [&str; 9] =
        ["env", "pem", "key", "p12", "pfx", "jks", "keystore", "kdbx", "ppk"];
    const NAMES: [&str; 6] =
        [".netrc", ".pgpass", ".htpasswd", ".git-credentials", ".npmrc", "credentials"];
    const SAMPLES: [&str; 5] = ["example", "sample", "template", "dist", "defaults"];
    let name = name.to_ascii_lowercase();
    if let Some(of) = name.strip_prefix(".env") {
        let variant = of.strip_prefix('.');
        let sample = variant.is_some_and(|it| it.split('.').any(|part| SAMPLES.contains(&part)));
        return of.is_empty() || (variant.is_some() && !sample);
    }
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let is_key = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"].contains(&name.as_str());
    is_key
        || NAMES.contains(&name.as_str())
        || extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
}

/// Whether a text begins as private keys do.
pub(super) fn is_private_key(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(256)];
    let first = head.trim_ascii_start().split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first = first.trim_ascii_end();
    first.starts_with(b"-----BEGIN ") && first.ends_with(b"PRIVATE KEY-----")
}

/// Whether a file of this name is no text, so that it need not be read to know.
pub(super) fn is_binary(name: &str) -> bool {
    const EXTENSIONS: &[&str] = &[
        "7z",
        "a",
        "aac",
        "avi",
        "avif",
        "bin",
        "bmp",
        "bz2",
        "class",
        "dat",
        "db",
        "deb",
        "dll",
        "dmg",
        "doc",
        "docx",
        "dylib",
        "ear",
        "eot",
        "exe",
        "flac",
        "gif",
        "gz",
        "heic",
        "icns",
        "ico",
        "iso",
        "jar",
        "jpeg",
        "jpg",
        "lib",
        "lz4",
        "m4a",
        "mkv",
        "mo",
        "mov",
        "mp3",
        "mp4",
        "mpg",
        "nupkg",
        "o",
        "obj",
        "odt",
        "ogg",
        "onnx",
        "otf",
        "parquet",
        "pdb",
        "pdf",
        "pkl",
        "png",
        "ppt",
        "pptx",
        "psd",
        "pyc",
        "pyd",
        "rar",
        "rlib",
        "rpm",
        "safetensors",
        "so",
        "sqlite",
        "sqlite3",
        "tar",
        "tgz",
        "tif",
        "tiff",
        "ttf",
        "wasm",
        "wav",
        "webm",
        "webp",
        "whl",
        "woff",
        "woff2",
        "xls",
        "xlsx",
        "xz",
        "zip",
        "zst",
    ];
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    extension.is_some_and(|it| EXTENSIONS.binary_search(&it.as_str()).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_name() {
        for name in
            [".env", ".env.local", "id_rsa", "ID_ED25519", "x.PEM", "a.key", ".netrc", "prod.env"]
        {
            assert!(is_secret(name), "{name}");
        }
        for name in [".env.example", ".environment", "id_rsa.pub", "key.rs", "pem", "keys.md"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn binary_files_are_known_by_name() {
        for name in ["a.png", "b.JPG", "7.7z", "lib.so", "x.zst"] {
            assert!(is_binary(name), "{name}");
        }
        for name in ["a.rs", "png", "b.svg", "c.txt", "d.test.ts.snap", ""] {
            assert!(!is_binary(name), "{name}");
        }
    }
}
