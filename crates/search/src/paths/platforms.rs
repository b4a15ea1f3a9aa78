//! Finds variants of one file for different platforms, such as `unix/pipe.rs` and
//! `windows/pipe.rs`, or `poll_linux.go` and `poll_darwin.go`.

use std::sync::LazyLock;

use isolith_types::FastSet;

/// The longest name of a platform.
const MAX_NAME: usize = 12;

/// A path without the platforms in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PlatformVariant<'p> {
    /// The same for all variants of a file.
    pub(crate) family: String,
    /// The words that name platforms, as written.
    pub(crate) platforms: Vec<&'p str>,
}

/// `None` for a path that names no platform.
pub(crate) fn platform_variant(path: &str) -> Option<PlatformVariant<'_>> {
    let mut platforms = Vec::new();
    let mut family = String::new();
    let mut copied = 0;
    let mut start = 0;
    while let Some(word) = next_word(path, start) {
        if is_platform(&path[word.clone()]) {
            if platforms.is_empty() {
                family.reserve(path.len());
            }
            family.push_str(&path[copied..word.start]);
            family.push('*');
            platforms.push(&path[word.clone()]);
            copied = word.end;
        }
        start = word.end;
    }
    if platforms.is_empty() {
        return None;
    }
    family.push_str(&path[copied..]);
    // A module that is a folder on one platform may be a file on another.
    if family.ends_with("/*/mod.rs") {
        family.truncate(family.len() - "/mod.rs".len());
        family.push_str(".rs");
    }
    Some(PlatformVariant { family, platforms })
}

/// The next word at or after a position: letters and digits up to an upper-case letter that
/// follows another character.
fn next_word(path: &str, from: usize) -> Option<std::ops::Range<usize>> {
    let bytes = path.as_bytes();
    let start = from + bytes[from..].iter().position(u8::is_ascii_alphanumeric)?;
    let continues = |at: &usize| {
        let (previous, byte) = (bytes[at - 1], bytes[*at]);
        byte.is_ascii_alphanumeric()
            && (!byte.is_ascii_uppercase() || previous.is_ascii_uppercase())
    };
    let end = (start + 1..bytes.len()).take_while(continues).last().map_or(start + 1, |at| at + 1);
    Some(start..end)
}

/// Operating systems, processors and runtimes.
const PLATFORMS: [&str; 59] = [
    "unix",
    "posix",
    "linux",
    "android",
    "windows",
    "win",
    "win32",
    "win64",
    "darwin",
    "macos",
    "mac",
    "osx",
    "apple",
    "ios",
    "bsd",
    "freebsd",
    "openbsd",
    "netbsd",
    "dragonfly",
    "solaris",
    "illumos",
    "aix",
    "plan9",
    "fuchsia",
    "haiku",
    "cygwin",
    "mingw",
    "wasm",
    "wasm32",
    "wasi",
    "wasip1",
    "emscripten",
    "amd64",
    "x86",
    "x64",
    "386",
    "i386",
    "arm",
    "arm64",
    "armv7",
    "aarch64",
    "riscv",
    "riscv64",
    "ppc64",
    "ppc64le",
    "powerpc",
    "s390x",
    "mips",
    "mips64",
    "mipsle",
    "mips64le",
    "loong64",
    "loongarch64",
    "sse2",
    "avx2",
    "avx512",
    "neon",
    "jvm",
    "unsupported",
];

static KNOWN: LazyLock<FastSet<&[u8]>> =
    LazyLock::new(|| PLATFORMS.iter().map(|name| name.as_bytes()).collect());

/// Whether a word names an operating system, a processor or a runtime.
fn is_platform(word: &str) -> bool {
    let mut lower = [0; MAX_NAME];
    let Some(lower) = lower.get_mut(..word.len()) else { return false };
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    KNOWN.contains(&*lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_of_a_file_are_of_one_family() {
        for (paths, family) in [
            (&["sys/unix/pipe.rs", "sys/windows/pipe.rs"][..], "sys/*/pipe.rs"),
            (&["poll_linux.go", "poll_darwin.go", "poll_unsupported.go"], "poll_*.go"),
            (&["cpu_linux_arm64.s", "cpu_freebsd_amd64.s"], "cpu_*_*.s"),
            (&["process/unix/mod.rs", "process/windows.rs"], "process/*.rs"),
            (&["src/linuxMain/kotlin/A.kt", "src/jvmMain/kotlin/A.kt"], "src/*Main/kotlin/A.kt"),
            (&["io/File.Unix.cs", "io/File.Windows.cs"], "io/File.*.cs"),
            (&["fs/WindowsPath.java", "fs/UnixPath.java"], "fs/*Path.java"),
            (&["Button.ios.tsx", "Button.android.tsx"], "Button.*.tsx"),
            (&["src/unix/linux.c", "src/win/darwin.c"], "src/*/*.c"),
        ] {
            for path in paths {
                let found = platform_variant(path).map(|it| it.family);
                assert_eq!(found.as_deref(), Some(family), "{path}");
            }
        }
    }

    #[test]
    fn platforms_are_whole_words() {
        for path in
            ["", "/", "src/window.rs", "winner/darwinism.c", "unixtime.go", "machine.py", "é/ü.rs"]
        {
            assert_eq!(platform_variant(path), None, "{path}");
        }
        let found = platform_variant("cpu_linux_arm64.s").unwrap();
        assert_eq!(found.platforms, ["linux", "arm64"]);
    }
}
