use super::*;

fn names(path: &str) -> String {
    file_roles(path).iter().map(FileRole::name).collect::<Vec<_>>().join(", ")
}

/// Each row: the expected roles, then paths.
#[test]
fn conventions_of_many_languages() {
    let table = [
        (
            "",
            "src/main.rs lib/parser.py app/models/user.rb cmd/server/main.go src/Retry.java \
             src/latest.ts lib/contest.js internal/attest/attest.go src/protest.c Makefile \
             Dockerfile CMakeLists.txt src/testclient.py lib/rack/lint.rb core/inspector.ts \
             kotlinx-coroutines-test/src/TestScope.kt src/Illuminate/Testing/TestResponse.php \
             src/security.py lib/history.ts cmd/install.go src/changes.rs src/license.go \
             pkg/pods/pod_spec.go src/mod.rs src/lib.rs include/api.h src/token_gen.rs \
             templates/page.html schema/user.proto db/schema.sql src/Benchmarking.swift \
             src/oldest.c folder/holder.rs src/Specification.java src/OpenApiSpec.ts \
             src/readme_parser.rs archive/tar.go src/demographics.py .github/script.py \
             lib/documents/document.rb src/TestCase.php src/resample.py src/contests/a.py",
        ),
        (
            "test file",
            "tests/client.py test/client.rb src/test/java/Foo.java spec/models/user.rb \
             src/__tests__/app.tsx src/__mocks__/fs.js pkg/testdata/a.go tests/data.py \
             test_client.py client_test.py pkg/client_test.go src/client.spec.ts \
             src/client.test.jsx src/client-test.js client_spec.rb lua/client_spec.lua \
             src/ClientTest.java src/ClientTests.cs src/ClientTest.php src/TestClient.java \
             src/ClientIT.java src/ClientSpec.scala src/ClientSuite.scala src/ClientSpec.hs \
             Dapper.Tests/Foo.cs common/commonTest/Foo.kt core/src/jvmTest/kotlin/Foo.kt \
             integration-tests/run.go e2e/login.ts login.e2e.ts conftest.py src/foo/tests.rs \
             net/url_unittest.cc test/foo_test.exs run.bats t/basic.t login.feature \
             internal/testutil/server.go src/FooTestCase.php fixtures/input.c \
             Tests/FooTests.swift test/foo_test.dart my_unittests/foo.d unittests/foo.cpp",
        ),
        (
            "example",
            "examples/echo.rs example/main.go samples/App.kt demo/index.html demos/a.py \
             hello_example.py src/EchoExample.java src/Button.stories.tsx tutorials/a.js \
             notebooks/intro.ipynb ktor-samples/App.kt",
        ),
        (
            "benchmark",
            "benches/parse.rs bench/run.js benchmarks/a.py parse_bench.go bench_parse.py \
             parse_benchmark.cc src/ParseBenchmark.java src/jmh/java/A.java \
             core-benchmarks/a.kt Dapper.Benchmarks/A.cs parse.bench.ts benchmark.rb",
        ),
        (
            "document",
            "README.md README docs/conf.py doc/api.c CHANGELOG CHANGELOG.md LICENSE-MIT LICENSE \
             guide.rst manual.adoc docs_src/app/main.py notes.txt AUTHORS COPYING NEWS.old \
             documentation/a/b.py lib/overview.rdoc",
        ),
        (
            "data file",
            "package.json config/app.yaml Cargo.toml Cargo.lock go.sum go.mod settings.ini \
             data/users.csv .gitignore .eslintrc.js .github/workflows/ci.yml pom.xml \
             locale/de.po log4j.properties requirements.txt src/icon.svg .env yarn.lock",
        ),
        (
            "legacy folder",
            "src/compat/a.py lib/legacy/a.rb src/deprecated/a.cs old/a.c http-compat/a.kt \
             compatibility/a.go app/obsolete/a.php fmt-legacy/a.rs",
        ),
        (
            "vendored",
            "vendor/github.com/a/b.go third_party/zlib/inflate.c node_modules/a/main.js \
             pip/_vendor/six.py thirdparty/a.h 3rdparty/b.cpp Pods/A/A.swift \
             venv/lib/site-packages/a.py Third-Party/a.cs",
        ),
        (
            "generated",
            "api/user_pb2.py api/user_pb2_grpc.py api/user.pb.go lib/user.g.dart \
             dist/app.min.js dist/app.min.css src/generated/a.rs Form.Designer.cs \
             pkg/zz_generated.deepcopy.go user_gen.go src/schema.generated.ts \
             routes.gen.ts bindata.go parser.tab.c src/__generated__/a.ts api_generated.h",
        ),
        (
            "entry file",
            "pkg/__init__.py src/index.ts lib/index.js com/acme/package-info.java \
             module-info.java pkg/doc.go components/index.tsx",
        ),
        ("test file, data file", "tests/data.json testdata/a.yaml src/a.snap"),
        ("test file, document", "tests/README.md"),
        ("test file, vendored", "vendor/a/b_test.go node_modules/a/test/b.js"),
        ("test file, entry file", "tests/__init__.py"),
        ("data file, generated", "dist/app.js.map"),
        ("test file, example", "pkg/example_test.go examples/echo_test.py"),
        ("example, document", "docs/examples/a.py docs/tutorial/a.rst"),
        ("legacy folder, vendored", "vendor/legacy/a.c"),
    ];
    for (expected, paths) in table {
        for path in paths.split_whitespace() {
            assert_eq!(names(path), expected, "{path}");
        }
    }
}

#[test]
fn unusual_paths_have_no_roles() {
    for path in ["", "/", "//", ".", "..", "a/", "_", "\u{e9}/\u{df}.\u{e9}", "Test", "x."] {
        let found = file_roles(path);
        assert!(found.is_empty() || path.starts_with('.') || path == "Test", "{path}: {found:?}");
    }
    assert!(file_roles("tests/").contains(FileRole::Test));
    assert!(file_roles("/tests//a.rs").contains(FileRole::Test));
}

#[test]
fn stems_lose_one_extension() {
    for (path, expected) in [
        ("src/client.py", "client"),
        ("src/SqlMapper.Async.cs", "SqlMapper.Async"),
        ("Makefile", "Makefile"),
        (".gitignore", ".gitignore"),
        ("a.b/c", "c"),
        ("", ""),
    ] {
        assert_eq!(stem(path), expected, "{path}");
    }
}

#[test]
fn sets_contain_what_was_inserted() {
    let set: FileRoles = [FileRole::Entry, FileRole::Test].into_iter().collect();
    assert_eq!(set.iter().collect::<Vec<_>>(), [FileRole::Test, FileRole::Entry]);
    assert!(!set.is_empty() && !set.contains(FileRole::Docs));
    assert_eq!(
        FileRole::ALL.into_iter().collect::<FileRoles>().iter().count(),
        FileRole::ALL.len()
    );
}

#[test]
fn remembered_folders_change_nothing() {
    let mut roles = PathRoles::default();
    for path in
        ["src/a.rs", "tests/a.rs", "src/tests/b.rs", "tests/vendor/c.go", "a.rs", "src/b.rs"]
    {
        for _ in 0..2 {
            assert_eq!(roles.of(path), file_roles(path), "{path}");
        }
    }
}
