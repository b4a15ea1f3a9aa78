use std::fmt;

/// The language of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
#[non_exhaustive]
pub enum Language {
    Rust,
    Python,
    JavaScript,
    TypeScript,
    Tsx,
    Go,
    Java,
    C,
    Cpp,
    CSharp,
    Ruby,
    Php,
    Kotlin,
    Swift,
    Scala,
    Dart,
    Lua,
    Elixir,
    Bash,
    Haskell,
    Zig,
    Markdown,
    Notebook,
    Json,
    Yaml,
    Toml,
    Ini,
    Xml,
    Sql,
    Html,
    Css,
    Vue,
    Svelte,
    Perl,
    R,
    Julia,
    Clojure,
    Erlang,
    OCaml,
    FSharp,
    Groovy,
    PowerShell,
    ObjectiveC,
    Make,
    CMake,
    Docker,
    Terraform,
    Protobuf,
    GraphQl,
    Nix,
    Rst,
    AsciiDoc,
    Text,
}

impl Language {
    /// Detects a file's language by its name, otherwise by its `#!` line. A `.h` header is
    /// C++ if its head looks like C++.
    pub fn of(path: &str, head: &[u8]) -> Self {
        let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
        if let Some(entry) = ENTRIES.iter().find(|entry| entry.has_file(file)) {
            return entry.language;
        }
        let extension = file.rsplit_once('.').map(|(_, extension)| extension);
        if extension == Some("h") && looks_like_cpp(head) {
            return Self::Cpp;
        }
        let by_extension = extension.and_then(|extension| {
            let extension = extension.to_ascii_lowercase();
            ENTRIES.iter().find(|entry| entry.extensions.contains(&extension.as_str()))
        });
        match by_extension {
            Some(entry) => entry.language,
            None => by_shebang(head).unwrap_or(Self::Text),
        }
    }

    /// The languages that a file with this name can be in.
    pub fn of_name(path: &str) -> Vec<Self> {
        match Self::of(path, b"") {
            Self::C if path.ends_with(".h") => vec![Self::C, Self::Cpp],
            language => vec![language],
        }
    }

    /// The name used in the database, in filters and in JSON.
    pub fn name(self) -> &'static str {
        self.entry().map_or("text", |entry| entry.name)
    }

    /// Finds a language by its name, a common alias or one of its extensions, ignoring case.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.trim().to_lowercase();
        let name = name.as_str();
        ENTRIES
            .iter()
            .find(|entry| entry.name == name || entry.aliases.contains(&name))
            .or_else(|| ENTRIES.iter().find(|entry| entry.extensions.contains(&name)))
            .map(|entry| entry.language)
    }

    /// All languages, in the order of docs/languages.md.
    pub fn all() -> impl Iterator<Item = Self> {
        ENTRIES.iter().map(|entry| entry.language)
    }

    /// Whether files in this language are parsed, so that chunks follow definitions.
    pub fn has_grammar(self) -> bool {
        self.entry().is_some_and(|entry| entry.grammar)
    }

    /// Whether it is prose under headings.
    pub(crate) fn is_document(self) -> bool {
        matches!(self, Self::Markdown | Self::Rst | Self::AsciiDoc)
    }

    fn entry(self) -> Option<&'static LanguageEntry> {
        ENTRIES.iter().find(|entry| entry.language == self)
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

struct LanguageEntry {
    language: Language,
    name: &'static str,
    grammar: bool,
    aliases: &'static [&'static str],
    extensions: &'static [&'static str],
    /// File names; one that ends in `.` is a prefix.
    files: &'static [&'static str],
    /// Interpreters that a `#!` line may name, without version.
    interpreters: &'static [&'static str],
}

impl LanguageEntry {
    fn has_file(&self, file: &str) -> bool {
        self.files
            .iter()
            .any(|name| if name.ends_with('.') { file.starts_with(name) } else { file == *name })
    }

    const fn called(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    const fn files(mut self, files: &'static [&'static str]) -> Self {
        self.files = files;
        self
    }

    const fn run_by(mut self, interpreters: &'static [&'static str]) -> Self {
        self.interpreters = interpreters;
        self
    }
}

const fn parsed(
    language: Language,
    name: &'static str,
    extensions: &'static [&'static str],
) -> LanguageEntry {
    let mut entry = plain(language, name, extensions);
    entry.grammar = true;
    entry
}

const fn plain(
    language: Language,
    name: &'static str,
    extensions: &'static [&'static str],
) -> LanguageEntry {
    LanguageEntry {
        language,
        name,
        grammar: false,
        aliases: &[],
        extensions,
        files: &[],
        interpreters: &[],
    }
}

use Language as L;

static ENTRIES: &[LanguageEntry] = &[
    parsed(L::Rust, "rust", &["rs"]),
    parsed(L::Python, "python", &["py", "pyi", "pyw"])
        .called(&["python3"])
        .files(&["SConstruct", "SConscript", "wscript"])
        .run_by(&["python", "pypy"]),
    parsed(L::JavaScript, "javascript", &["js", "mjs", "cjs", "jsx", "es6"])
        .called(&["node", "ecmascript"])
        .files(&["Jakefile"])
        .run_by(&["node", "nodejs", "bun"]),
    parsed(L::TypeScript, "typescript", &["ts", "mts", "cts"]).run_by(&["ts-node", "deno", "tsx"]),
    parsed(L::Tsx, "tsx", &["tsx"]),
    parsed(L::Go, "go", &["go"]).called(&["golang"]),
    parsed(L::Java, "java", &["java"]),
    parsed(L::C, "c", &["c", "h"]),
    parsed(
        L::Cpp,
        "cpp",
        &["cpp", "cc", "cxx", "c++", "hpp", "hh", "hxx", "h++", "ipp", "inl", "tpp", "cu", "cuh"],
    ),
    parsed(L::CSharp, "csharp", &["cs", "csx"]).called(&["c#", "c-sharp", "dotnet"]),
    parsed(L::Ruby, "ruby", &["rb", "rake", "gemspec", "ru", "podspec"])
        .files(&["Gemfile", "Rakefile", "Podfile", "Vagrantfile", "Guardfile", "Brewfile"])
        .run_by(&["ruby", "jruby"]),
    parsed(L::Php, "php", &["php", "php3", "php4", "php5", "phtml"]).run_by(&["php"]),
    parsed(L::Kotlin, "kotlin", &["kt", "kts"]),
    parsed(L::Swift, "swift", &["swift"]).run_by(&["swift"]),
    parsed(L::Scala, "scala", &["scala", "sc", "sbt"]).run_by(&["scala"]),
    parsed(L::Dart, "dart", &["dart"]).run_by(&["dart"]),
    parsed(L::Lua, "lua", &["lua", "rockspec"]).run_by(&["lua", "luajit"]),
    parsed(L::Elixir, "elixir", &["ex", "exs"]).run_by(&["elixir"]),
    parsed(L::Bash, "bash", &["sh", "bash", "bats", "zsh", "ksh"])
        .called(&["shell", "shellscript"])
        .files(&[".bashrc", ".bash_profile", ".profile", ".zshrc", "PKGBUILD"])
        .run_by(&["sh", "bash", "dash", "ksh", "zsh", "ash", "bats"]),
    parsed(L::Haskell, "haskell", &["hs"]).run_by(&["runhaskell", "runghc", "stack"]),
    parsed(L::Zig, "zig", &["zig", "zon"]),
    plain(L::Markdown, "markdown", &["md", "markdown", "mdx", "mkd", "mdown"]),
    plain(L::Notebook, "notebook", &["ipynb"]).called(&["jupyter"]),
    plain(
        L::Json,
        "json",
        &["json", "jsonc", "json5", "jsonl", "ndjson", "geojson", "webmanifest"],
    )
    .files(&["composer.lock", "Pipfile.lock", ".babelrc", ".eslintrc", ".prettierrc"]),
    plain(L::Yaml, "yaml", &["yaml", "yml"]).files(&[".clang-format", ".clang-tidy"]),
    parsed(L::Toml, "toml", &["toml"]).files(&["Cargo.lock", "poetry.lock", "uv.lock", "Pipfile"]),
    plain(L::Ini, "ini", &["ini", "cfg", "conf", "properties"]).files(&[
        ".editorconfig",
        ".gitconfig",
        ".npmrc",
    ]),
    plain(
        L::Xml,
        "xml",
        &["xml", "xsd", "xsl", "xslt", "csproj", "props", "targets", "plist", "svg"],
    ),
    plain(L::Sql, "sql", &["sql", "ddl", "psql"]),
    plain(L::Html, "html", &["html", "htm", "xhtml"]),
    plain(L::Css, "css", &["css", "scss", "sass", "less"]),
    plain(L::Vue, "vue", &["vue"]),
    plain(L::Svelte, "svelte", &["svelte"]),
    plain(L::Perl, "perl", &["pl", "pm", "perl"]).run_by(&["perl"]),
    plain(L::R, "r", &["r"]).run_by(&["Rscript"]),
    plain(L::Julia, "julia", &["jl"]).run_by(&["julia"]),
    plain(L::Clojure, "clojure", &["clj", "cljs", "cljc", "edn"]),
    plain(L::Erlang, "erlang", &["erl", "hrl"]).run_by(&["escript"]),
    plain(L::OCaml, "ocaml", &["ml", "mli"]).run_by(&["ocaml"]),
    plain(L::FSharp, "fsharp", &["fs", "fsi", "fsx"]).called(&["f#", "f-sharp"]),
    plain(L::Groovy, "groovy", &["groovy", "gradle"]).files(&["Jenkinsfile"]).run_by(&["groovy"]),
    plain(L::PowerShell, "powershell", &["ps1", "psm1", "psd1"]).run_by(&["pwsh"]),
    plain(L::ObjectiveC, "objective-c", &["m", "mm"]).called(&["objc", "objectivec"]),
    plain(L::Make, "make", &["mk", "mak"])
        .called(&["makefile"])
        .files(&["Makefile", "makefile", "GNUmakefile", "Makefile."])
        .run_by(&["make"]),
    plain(L::CMake, "cmake", &["cmake"]).files(&["CMakeLists.txt"]),
    plain(L::Docker, "dockerfile", &["dockerfile"]).called(&["docker"]).files(&[
        "Dockerfile",
        "Containerfile",
        "Dockerfile.",
    ]),
    parsed(L::Terraform, "terraform", &["tf", "tfvars", "hcl"]),
    parsed(L::Protobuf, "protobuf", &["proto"]),
    parsed(L::GraphQl, "graphql", &["graphql", "gql"]),
    plain(L::Nix, "nix", &["nix"]),
    plain(L::Rst, "rst", &["rst"]).called(&["restructuredtext"]),
    plain(L::AsciiDoc, "asciidoc", &["adoc", "asciidoc"]),
    plain(L::Text, "text", &["txt"]).called(&["plain", "plaintext"]),
];

/// Distinguishes C++ headers from C headers. Only the start of a line counts, so that
/// comments seldom match.
const CPP_STARTS: [&[u8]; 8] = [
    b"namespace ",
    b"template",
    b"class ",
    b"using ",
    b"public:",
    b"private:",
    b"#include <string>",
    b"#include <vector>",
];

fn looks_like_cpp(head: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n').any(|line| {
        let line = line.trim_ascii_start();
        CPP_STARTS.iter().any(|start| line.starts_with(start))
            || (!line.starts_with(b"*")
                && !line.starts_with(b"/")
                && line.windows(5).any(|window| window == b"std::"))
    })
}

/// `#!/usr/bin/env -S python3.12 -u` and `#!/bin/bash` name python and bash.
fn by_shebang(head: &[u8]) -> Option<Language> {
    let line = head.split(|byte| *byte == b'\n').next()?.strip_prefix(b"#!")?;
    let line = std::str::from_utf8(line).ok()?;
    let program = line
        .split_whitespace()
        .map(|word| word.rsplit('/').next().unwrap_or(word))
        .find(|word| *word != "env" && !word.starts_with('-') && !word.contains('='))?;
    let bare = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    ENTRIES
        .iter()
        .find(|entry| entry.interpreters.iter().any(|name| *name == program || *name == bare))
        .map(|entry| entry.language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_is_detected_from_the_file_name() {
        let table: &[(&str, &str, Language)] = &[
            ("src/main.rs", "", L::Rust),
            ("a/b.PY", "", L::Python),
            ("x.test.tsx", "", L::Tsx),
            ("include/list.h", "#include <stdio.h>\nint f(void);\n", L::C),
            ("include/list.h", "/* class */\nnamespace a {\n", L::Cpp),
            ("include/list.h", "// a\nvoid f(std::string s);\n", L::Cpp),
            ("include/list.h", "/*\n * like std::string\n */\nint f();\n", L::C),
            ("Dockerfile.dev", "", L::Docker),
            ("CMakeLists.txt", "", L::CMake),
            ("notes.txt", "", L::Text),
            ("bin/tool", "#!/usr/bin/env python3.12\n", L::Python),
            ("bin/tool", "#!/bin/sh -e\n", L::Bash),
            ("bin/tool", "#!/usr/bin/env -S FOO=1 ruby -w\n", L::Ruby),
            ("bin/tool", "#!/opt/strange\n", L::Text),
            ("LICENSE", "", L::Text),
            (".rs", "", L::Rust),
            ("", "", L::Text),
            ("weird.", "\u{0}", L::Text),
        ];
        for (path, head, language) in table {
            assert_eq!(Language::of(path, head.as_bytes()), *language, "{path}: {head:?}");
        }
    }

    #[test]
    fn every_name_maps_back_to_its_language() {
        for language in Language::all() {
            assert_eq!(Language::from_name(language.name()), Some(language));
        }
        let aliases = [
            ("js", L::JavaScript),
            ("PY", L::Python),
            ("c++", L::Cpp),
            ("C#", L::CSharp),
            ("golang", L::Go),
            ("sh", L::Bash),
            ("md", L::Markdown),
            ("yml", L::Yaml),
        ];
        for (alias, language) in aliases {
            assert_eq!(Language::from_name(alias), Some(language), "{alias}");
        }
        assert_eq!(Language::from_name("klingon"), None);
    }

    #[test]
    fn names_and_extensions_are_unambiguous() {
        let mut seen = std::collections::HashSet::new();
        for entry in ENTRIES {
            for extension in entry.extensions {
                assert!(seen.insert(extension), "{extension}");
            }
        }
    }
}
