//! Edges for each language. The expected lists are complete for the given kinds.

mod changes;
mod embedded;
mod project;

use isolith_types::EdgeKind;
use isolith_types::EdgeKind::{Calls, Implements, Imports, Inherits, Tests};

use self::project::Files;

#[track_caller]
fn expect(kinds: &[EdgeKind], files: &[(&str, &str)], edges: &[&str]) {
    assert_eq!(Files::of(files).edges(kinds), edges);
}

#[test]
fn python_imports_classes_and_types() {
    let files = [
        ("pkg/__init__.py", "from .core import Engine as Motor\nfrom . import tools\n"),
        (
            "pkg/core.py",
            "from .base import Base\n\
             class Engine(Base):\n    def run(self):\n        self.start()\n        self.stop()\n\
             \x20   def stop(self): ...\n    def start(self): ...\n",
        ),
        ("pkg/base.py", "class Base:\n    def start(self): ...\n    def close(self): ...\n"),
        ("pkg/tools.py", "def mend(engine): ...\ndef run(): ...\n"),
        (
            "app.py",
            "import pkg\nfrom pkg import Motor, tools as t\n\
             def main(run, e: 'Motor | None'):\n    run()\n    m = Motor()\n    m.close()\n    e.run()\n\
             \x20   t.mend(m)\n    pkg.tools.run()\n    print(m)\n    unknown.run()\n",
        ),
    ];
    expect(
        &[Calls, Inherits],
        &files,
        &[
            "app.py#main -CALLS> pkg/base.py#Base.close",
            "app.py#main -CALLS> pkg/core.py#Engine",
            "app.py#main -CALLS> pkg/core.py#Engine.run",
            "app.py#main -CALLS> pkg/tools.py#mend",
            "app.py#main -CALLS> pkg/tools.py#run",
            "pkg/core.py#Engine -INHERITS> pkg/base.py#Base",
            "pkg/core.py#Engine.run -CALLS> pkg/core.py#Engine.start",
            "pkg/core.py#Engine.run -CALLS> pkg/core.py#Engine.stop",
        ],
    );
    expect(
        &[Imports],
        &files,
        &[
            "app.py -IMPORTS> pkg/__init__.py",
            "app.py -IMPORTS> pkg/core.py#Engine",
            "app.py -IMPORTS> pkg/tools.py",
            "pkg/__init__.py -IMPORTS> pkg/core.py",
            "pkg/__init__.py -IMPORTS> pkg/core.py#Engine",
            "pkg/__init__.py -IMPORTS> pkg/tools.py",
            "pkg/core.py -IMPORTS> pkg/base.py",
            "pkg/core.py -IMPORTS> pkg/base.py#Base",
        ],
    );
}

#[test]
fn python_star_imports() {
    let files = [
        ("a.py", "from b import *\ndef f():\n    g()\n    print(h)\n"),
        ("b.py", "from c import *\ndef g(): ...\n"),
        ("c.py", "def h(): ...\n"),
        ("d.py", "def k():\n    g()\n"),
    ];
    let edges = ["a.py#f -CALLS> b.py#g", "a.py#f -REFERENCES> c.py#h"];
    expect(&[Calls, EdgeKind::References], &files, &edges);
}

#[test]
fn a_method_of_an_unknown_object_is_a_candidate_if_few_types_have_it() {
    let one = ("a.py", "class A:\n    def fold(self): ...\n");
    let call = ("b.py", "def f(x):\n    x.fold()\n    fold()\n");
    let candidate = "b.py#f -CALLS> a.py#A.fold?";
    expect(&[Calls], &[one, call], &[candidate]);
    let many = "class A:\n def fold(self): ...\nclass B:\n def fold(self): ...\n\
                class C:\n def fold(self): ...\nclass D:\n def fold(self): ...\n";
    expect(&[Calls], &[("a.py", many), call], &[]);
}

#[test]
fn typescript_exports_and_types() {
    let files = [
        ("package.json", "{\"name\": \"lib\"}"),
        (
            "tsconfig.json",
            "{\"compilerOptions\": {\"baseUrl\": \".\", \"paths\": {\"@/*\": [\"src/*\"]}}}",
        ),
        (
            "src/index.ts",
            "export * from './store';\nexport { make as build } from './make.js';\nexport default class Top {}\n",
        ),
        (
            "src/store.ts",
            "export interface Shape { area(): number }\n\
             export abstract class Base { protected log(): void {} }\n\
             export class Store extends Base implements Shape {\n\
             \x20 private items: Item[] = [];\n\
             \x20 area() { this.log(); for (const i of this.items) i.touch(); return 1 }\n\
             \x20 static open(): Store { return new Store() }\n}\n\
             class Item { touch() {} }\n",
        ),
        (
            "src/make.ts",
            "export const make = (log: () => void) => { log(); return helper() };\nfunction helper() {}\n",
        ),
        (
            "app.ts",
            "import Top, { Store, build } from '@/index';\nimport * as all from './src';\n\
             function run(s: Store) {\n  build(s); s.area(); Store.open().area(); all.Store.open(); new Top();\n\
             \x20 const area = () => {}; area(); console.log(s);\n}\n",
        ),
    ];
    expect(
        &[Calls, Inherits, Implements],
        &files,
        &[
            "app.ts#run -CALLS> app.ts#run.area",
            "app.ts#run -CALLS> src/index.ts#Top",
            "app.ts#run -CALLS> src/make.ts#make",
            "app.ts#run -CALLS> src/store.ts#Store.area",
            "app.ts#run -CALLS> src/store.ts#Store.open",
            "src/make.ts#make -CALLS> src/make.ts#helper",
            "src/store.ts#Store -IMPLEMENTS> src/store.ts#Shape",
            "src/store.ts#Store -INHERITS> src/store.ts#Base",
            "src/store.ts#Store.area -CALLS> src/store.ts#Base.log",
            "src/store.ts#Store.area -CALLS> src/store.ts#Item.touch",
            "src/store.ts#Store.open -CALLS> src/store.ts#Store",
        ],
    );
}

#[test]
fn javascript_requires() {
    let files = [
        (
            "a.js",
            "const { go, Stop: Halt } = require('./b');\nconst c = require('./c');\ngo(); new Halt(); c(); c.extra();\n",
        ),
        ("b.js", "function go() {}\nclass Stop {}\nmodule.exports = { go, Stop };\n"),
        (
            "c.js",
            "module.exports = main;\nfunction main() {}\nmain.extra = function () { main() };\n",
        ),
    ];
    expect(
        &[Calls],
        &files,
        &[
            "a.js -CALLS> b.js#Stop",
            "a.js -CALLS> b.js#go",
            "a.js -CALLS> c.js#main",
            "c.js#main.extra -CALLS> c.js#main",
        ],
    );
}

#[test]
fn rust_modules_impls_and_traits() {
    let files = [
        ("Cargo.toml", "[package]\nname = \"my-lib\"\n"),
        (
            "src/lib.rs",
            "mod shape;\nmod util;\npub use shape::{Round, Shape as Form};\npub fn top() { util::deep::f(); crate::util::g() }\n",
        ),
        (
            "src/shape.rs",
            "use crate::util::{self, g as gg};\n\
             pub trait Shape { fn area(&self) -> f64; fn twice(&self) { self.area(); } }\n\
             pub struct Round { inner: Option<Box<Inner>> }\n\
             struct Inner;\n\
             impl Inner { fn spin(&self) {} }\n\
             impl Round { pub fn new() -> Self { Round { inner: None } } fn all(self) { self.inner.unwrap().spin(); self.twice(); util::g(); gg() } }\n\
             impl Shape for Round { fn area(&self) -> f64 { helper(|g: u8| g) ; 0.0 } }\n\
             fn helper(g: impl Fn(u8) -> u8) { g(1); assert!(other(2)); }\n\
             fn other(n: u8) -> bool { true }\n",
        ),
        (
            "src/util/mod.rs",
            "pub mod deep;\npub fn g() {}\n#[cfg(test)]\nmod tests {\n    use super::*;\n    #[test]\n    fn works() { g(); }\n}\n",
        ),
        ("src/util/deep.rs", "pub fn f() { super::g() }\n"),
        (
            "other/src/main.rs",
            "use my_lib::{Round, Form};\nfn main() { let r = Round::new(); r.area(); g(); }\n",
        ),
        ("other/Cargo.toml", "[package]\nname = \"other\"\n"),
    ];
    expect(
        &[Calls, Implements, Tests],
        &files,
        &[
            "other/src/main.rs#main -CALLS> src/shape.rs#Round.area",
            "other/src/main.rs#main -CALLS> src/shape.rs#Round.new",
            "src/lib.rs#top -CALLS> src/util/deep.rs#f",
            "src/lib.rs#top -CALLS> src/util/mod.rs#g",
            "src/shape.rs#Round -IMPLEMENTS> src/shape.rs#Shape",
            "src/shape.rs#Round.all -CALLS> src/shape.rs#Inner.spin",
            "src/shape.rs#Round.all -CALLS> src/shape.rs#Shape.twice",
            "src/shape.rs#Round.all -CALLS> src/util/mod.rs#g",
            "src/shape.rs#Round.area -CALLS> src/shape.rs#helper",
            "src/shape.rs#Shape.twice -CALLS> src/shape.rs#Shape.area",
            "src/shape.rs#helper -CALLS> src/shape.rs#other",
            "src/util/deep.rs#f -CALLS> src/util/mod.rs#g",
            "src/util/mod.rs#tests.works -CALLS> src/util/mod.rs#g",
            "src/util/mod.rs#tests.works -TESTS> src/util/mod.rs#g",
        ],
    );
}

#[test]
fn type_only_imports_are_marked() {
    let files = [
        ("a.ts", "export type A = number;\nexport class B {}\n"),
        ("all.ts", "import type { A } from './a';\n"),
        ("one.ts", "import { type A, type B } from './a';\nexport type { A as C } from './a';\n"),
        ("some.ts", "import { type A } from './a';\nimport { B } from './a';\n"),
        (
            "p.py",
            "import typing\nfrom typing import TYPE_CHECKING\n\
             if TYPE_CHECKING:\n    from q import Q\nelse:\n    import r\n\
             if typing.TYPE_CHECKING:\n    import s\n",
        ),
        ("q.py", "class Q: ...\n"),
        ("r.py", ""),
        ("s.py", ""),
    ];
    let project = Files::of(&files);
    let mut types = Vec::new();
    for (path, _) in files {
        for edge in
            project.resolution(path).edges.iter().filter(|edge| edge.to.definition.is_none())
        {
            types.push(format!("{path} {} {}", edge.to.path, edge.type_only));
        }
    }
    let expected = [
        "all.ts a.ts true",
        "one.ts a.ts true",
        "some.ts a.ts false",
        "p.py q.py true",
        "p.py r.py false",
        "p.py s.py true",
    ];
    assert_eq!(types, expected);
}

#[test]
fn a_declaration_is_no_use_of_what_it_hides() {
    let java = "class A {\n  B reader;\n  void f() { B reader = new B(); reader.go(); }\n}\n\
                class B { void go() {} }\n";
    let go = "package p\n\nvar left = 1\n\nfunc f() {\n\tleft, right := g()\n\t_ = right\n}\n\n\
              func g() (int, int) { return 1, 2 }\n";
    for (path, text) in [("A.java", java), ("p.go", go)] {
        let edges = Files::of(&[(path, text)]).edges(&[EdgeKind::References]);
        let hidden = |edge: &&String| edge.ends_with("A.reader") || edge.ends_with("#left");
        assert_eq!(edges.iter().find(hidden), None, "{path}");
    }
}

#[test]
fn a_variable_shadows_only_after_its_declaration() {
    let rust = "fn size() -> u32 { 1 }\nfn rows() -> Vec<u32> { vec![] }\n\
                fn main() {\n    let size = size();\n    for rows in rows() { size(); rows(); }\n\
                \x20   if let Some(main) = main() { main(); }\n}\n\
                fn gone() {}\nfn late() {\n    let gone = 1;\n    gone();\n}\n";
    let main =
        ["src/main.rs#main -CALLS> src/main.rs#main", "src/main.rs#main -CALLS> src/main.rs#rows"];
    let size = "src/main.rs#main -CALLS> src/main.rs#size";
    expect(&[Calls], &[("src/main.rs", rust)], &[main[0], main[1], size]);
    let go = "package main\nfunc size() int { return 1 }\nfunc main() {\n\tsize := size()\n\tsize()\n}\n";
    expect(&[Calls], &[("main.go", go)], &["main.go#main -CALLS> main.go#size"]);
    // In other languages it shadows outer names in the whole function.
    let python = "def size(): ...\ndef main():\n    size = size()\n";
    expect(&[Calls], &[("main.py", python)], &[]);
}

#[test]
fn go_packages_and_receivers() {
    let files = [
        ("go.mod", "module example.com/app\n"),
        (
            "main.go",
            "package main\nimport (\n\t\"fmt\"\n\tst \"example.com/app/store\"\n)\nfunc main() {\n\ts, err := st.Open(\"x\")\n\ts.Put(1)\n\ts.Log()\n\thelp()\n\tfmt.Println(err)\n}\n",
        ),
        ("help.go", "package main\nfunc help() { Put() }\n"),
        (
            "store/store.go",
            "package store\ntype Base struct{}\nfunc (b Base) Log() {}\ntype Store struct {\n\tBase\n\tn int\n}\nfunc Open(p string) (*Store, error) { return &Store{n: 1}, nil }\n",
        ),
        (
            "store/put.go",
            "package store\nfunc (s *Store) Put(n int) { s.check(n); check() }\nfunc (s *Store) check(n int) {}\n",
        ),
    ];
    expect(
        &[Calls, Inherits],
        &files,
        &[
            "main.go#main -CALLS> help.go#help",
            "main.go#main -CALLS> store/put.go#Store.Put",
            "main.go#main -CALLS> store/store.go#Base.Log",
            "main.go#main -CALLS> store/store.go#Open",
            "store/put.go#Store.Put -CALLS> store/put.go#Store.check",
            "store/store.go#Store -INHERITS> store/store.go#Base",
        ],
    );
    expect(
        &[Imports],
        &files,
        &["main.go -IMPORTS> store/put.go", "main.go -IMPORTS> store/store.go"],
    );
}

#[test]
fn java_packages_and_inheritance() {
    let files = [
        (
            "a/Base.java",
            "package a;\npublic class Base { protected void log() {} static int make() { return 1; } }\n",
        ),
        ("a/Shape.java", "package a;\npublic interface Shape { double area(); }\n"),
        (
            "b/Round.java",
            "package b;\nimport a.Base;\nimport a.Shape;\nimport static a.Base.make;\nimport java.util.List;\n\
             public class Round extends Base implements Shape {\n\
             \x20 private Helper helper = new Helper();\n\
             \x20 public double area() { log(); helper.help(); make(); for (Helper h : all()) h.help(); return size(); }\n\
             \x20 List<Helper> all() { return null; }\n\
             \x20 double size() { Runnable log = null; log.run(); return 0; }\n}\n",
        ),
        (
            "b/Helper.java",
            "package b;\nclass Helper { void help() { String s = \"\"; s.trim(); } void run() {} }\n",
        ),
    ];
    expect(
        &[Calls, Inherits, Implements],
        &files,
        &[
            "b/Round.java#Round -CALLS> b/Helper.java#Helper",
            "b/Round.java#Round -IMPLEMENTS> a/Shape.java#Shape",
            "b/Round.java#Round -INHERITS> a/Base.java#Base",
            "b/Round.java#Round.area -CALLS> a/Base.java#Base.log",
            "b/Round.java#Round.area -CALLS> a/Base.java#Base.make",
            "b/Round.java#Round.area -CALLS> b/Helper.java#Helper.help",
            "b/Round.java#Round.area -CALLS> b/Round.java#Round.all",
            "b/Round.java#Round.area -CALLS> b/Round.java#Round.size",
        ],
    );
}

#[test]
fn c_prototypes_resolve_to_definitions() {
    let files = [
        (
            "include/list.h",
            "struct list { int n; };\ntypedef struct { int x; } point;\nint list_add(struct list *l, int n);\n#define SQUARE(x) ((x) * (x))\n",
        ),
        (
            "src/list.c",
            "#include \"list.h\"\nstatic void grow(struct list *l) {}\nint list_add(struct list *l, int n) { grow(l); return SQUARE(n); }\n",
        ),
        (
            "src/main.c",
            "#include \"../include/list.h\"\n#include <stdio.h>\nint main(void) { struct list l; list_add(&l, 1); printf(\"x\"); grow(&l); return 0; }\n",
        ),
        ("src/other.c", "void unseen(void) { list_add(0, 1); }\n"),
    ];
    expect(
        &[Calls],
        &files,
        &[
            "src/list.c#list_add -CALLS> include/list.h#SQUARE",
            "src/list.c#list_add -CALLS> src/list.c#grow",
            "src/main.c#main -CALLS> src/list.c#list_add",
        ],
    );
}

#[test]
fn cpp_out_of_line_methods() {
    let files = [
        (
            "shape.hpp",
            "namespace geo {\nclass Shape { public: virtual double area() const; void log(); };\n\
             class Round : public Shape { public: Round(); double area() const; private: Helper* helper; };\n\
             struct Helper { void help() {} };\n}\n",
        ),
        (
            "shape.cpp",
            "#include \"shape.hpp\"\nnamespace geo {\nvoid Shape::log() {}\n\
             double Round::area() const { log(); helper->help(); this->log(); return local(); }\n\
             static double local() { return 1; }\n}\n",
        ),
        (
            "main.cpp",
            "#include \"shape.hpp\"\nint main() { geo::Round r; r.area(); auto h = new geo::Helper(); h->help(); missing(); }\n",
        ),
    ];
    expect(
        &[Calls, Inherits],
        &files,
        &[
            "main.cpp#main -CALLS> shape.cpp#geo.Round.area",
            "main.cpp#main -CALLS> shape.hpp#geo.Helper",
            "main.cpp#main -CALLS> shape.hpp#geo.Helper.help",
            "shape.cpp#geo.Round.area -CALLS> shape.cpp#geo.Shape.log",
            "shape.cpp#geo.Round.area -CALLS> shape.cpp#geo.local",
            "shape.cpp#geo.Round.area -CALLS> shape.hpp#geo.Helper.help",
            "shape.hpp#geo.Round -INHERITS> shape.hpp#geo.Shape",
        ],
    );
}

#[test]
fn csharp_namespaces() {
    let files = [
        (
            "Shapes.cs",
            "namespace Geo.Shapes {\n public interface IShape { double Area(); }\n public class Base { protected void Log() {} }\n}\n",
        ),
        (
            "Round.cs",
            "using Geo.Shapes;\nnamespace Geo;\npublic class Round : Base, IShape {\n private readonly Helper helper;\n\
             \x20 public Helper Other { get; set; }\n\
             \x20 public double Area() { Log(); helper.Help(); this.Other.Mend(); base.Log(); var h = new Helper(); h.Help(); return Size(1); }\n\
             \x20 double Size(int Log) { return Log; }\n}\n",
        ),
        (
            "Helper.cs",
            "namespace Geo;\npublic class Helper { public void Help() { System.Console.WriteLine(); } public void Mend() {} }\n",
        ),
    ];
    expect(
        &[Calls, Inherits, Implements],
        &files,
        &[
            "Round.cs#Round -IMPLEMENTS> Shapes.cs#Geo.Shapes.IShape",
            "Round.cs#Round -INHERITS> Shapes.cs#Geo.Shapes.Base",
            "Round.cs#Round.Area -CALLS> Helper.cs#Helper",
            "Round.cs#Round.Area -CALLS> Helper.cs#Helper.Help",
            "Round.cs#Round.Area -CALLS> Helper.cs#Helper.Mend",
            "Round.cs#Round.Area -CALLS> Round.cs#Round.Size",
            "Round.cs#Round.Area -CALLS> Shapes.cs#Geo.Shapes.Base.Log",
        ],
    );
}

#[test]
fn ruby_constants_and_self() {
    let files = [
        (
            "lib/shape.rb",
            "module Loud\n  def log\n  end\nend\nclass Shape\n  include Loud\n  def area\n    log\n    size(1)\n  end\n  def size(n)\n    n\n  end\nend\n",
        ),
        (
            "lib/round.rb",
            "require_relative 'shape'\nclass Round < Shape\n  def initialize\n    @helper = Helper.new\n  end\n  def run\n    @helper.help\n    self.area\n    size = 1\n    size\n    puts size\n  end\nend\n",
        ),
        ("lib/helper.rb", "class Helper\n  def help\n  end\nend\n"),
    ];
    expect(
        &[Calls, Inherits],
        &files,
        &[
            "lib/round.rb#Round -INHERITS> lib/shape.rb#Shape",
            "lib/round.rb#Round.initialize -CALLS> lib/helper.rb#Helper",
            "lib/round.rb#Round.run -CALLS> lib/helper.rb#Helper.help",
            "lib/round.rb#Round.run -CALLS> lib/shape.rb#Shape.area",
            "lib/shape.rb#Shape -INHERITS> lib/shape.rb#Loud",
            "lib/shape.rb#Shape.area -CALLS> lib/shape.rb#Loud.log",
            "lib/shape.rb#Shape.area -CALLS> lib/shape.rb#Shape.size",
        ],
    );
    expect(&[Imports], &files, &["lib/round.rb -IMPORTS> lib/shape.rb"]);
}

#[test]
fn php_namespaces_and_traits() {
    let files = [
        (
            "src/Shape.php",
            "<?php\nnamespace Geo;\ninterface Shape { public function area(): float; }\ntrait Loud { protected function log() {} }\nfunction helper() {}\n",
        ),
        (
            "src/Round.php",
            "<?php\nnamespace App;\nuse Geo\\Shape;\nuse Geo\\Loud as Noise;\nuse function Geo\\helper;\n\
             class Round extends Base implements Shape {\n  use Noise;\n\
             \x20 public function __construct(private Tool $tool) {}\n\
             \x20 public function area(): float { $this->log(); $this->tool->mend(); helper(); $t = new Tool(); $t->mend(); parent::init(); self::make(); missing(); return 1; }\n\
             \x20 static function make() {}\n}\n",
        ),
        (
            "src/Base.php",
            "<?php\nnamespace App;\nclass Base { protected function init() {} }\nclass Tool { public function mend() {} }\n",
        ),
    ];
    expect(
        &[Calls, Inherits, Implements],
        &files,
        &[
            "src/Round.php#Round -IMPLEMENTS> src/Shape.php#Loud",
            "src/Round.php#Round -IMPLEMENTS> src/Shape.php#Shape",
            "src/Round.php#Round -INHERITS> src/Base.php#Base",
            "src/Round.php#Round.area -CALLS> src/Base.php#Base.init",
            "src/Round.php#Round.area -CALLS> src/Base.php#Tool",
            "src/Round.php#Round.area -CALLS> src/Base.php#Tool.mend",
            "src/Round.php#Round.area -CALLS> src/Round.php#Round.make",
            "src/Round.php#Round.area -CALLS> src/Shape.php#Loud.log",
            "src/Round.php#Round.area -CALLS> src/Shape.php#helper",
        ],
    );
}

/// Without a limit, every path through the modules would be followed.
#[test]
fn modules_that_reexport_each_other_terminate() {
    let names: Vec<String> = (0..12).map(|number| format!("m{number}")).collect();
    let passed_on = |name: &String| format!("mod {name};\npub use self::{name}::*;\n");
    let lib: String = names.iter().map(passed_on).collect();
    let inside = |name: &String| {
        let text = format!("use super::*;\npub fn f_{name}() {{ f_m11(); nobody::knows(); }}\n");
        (format!("src/{name}.rs"), text)
    };
    let modules: Vec<(String, String)> = names.iter().map(inside).collect();
    let mut files = vec![("src/lib.rs", lib.as_str())];
    files.extend(modules.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    let calls = Files::of(&files).edges(&[Calls]);
    assert_eq!(calls.len(), names.len());
    assert!(calls.iter().all(|call| call.ends_with("-CALLS> src/m11.rs#f_m11")), "{calls:?}");
}
