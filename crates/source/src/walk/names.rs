//! File names with a special meaning.

/// Name of Isolith's own ignore files, in the syntax of `.gitignore`.
pub const IGNORE_FILE: &str = ".isolithignore";

/// Whether the extension says that a file is not text, so that it need not be read.
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
    fn binary_files_are_recognised_by_name() {
        for name in ["a.png", "b.JPG", "7.7z", "lib.so", "x.zst"] {
            assert!(is_binary(name), "{name}");
        }
        for name in ["a.rs", "png", "b.svg", "c.txt", "d.test.ts.snap", ""] {
            assert!(!is_binary(name), "{name}");
        }
    }
}
