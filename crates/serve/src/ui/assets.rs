//! The files of the pages, compiled into the program.

pub(super) struct Asset {
    pub(super) path: &'static str,
    pub(super) kind: &'static str,
    pub(super) body: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! assets {
    ($($path:literal: $kind:ident = $file:literal),* $(,)?) => {
        &[$(Asset { path: $path, kind: $kind, body: include_str!(concat!("../../ui/", $file)) }),*]
    };
}

pub(super) const ASSETS: &[Asset] = assets![
    "/": HTML = "index.html",
    "/ui/style.css": STYLE = "style.css",
    "/ui/app.js": SCRIPT = "app.js",
    "/ui/api.js": SCRIPT = "api.js",
    "/ui/dom.js": SCRIPT = "dom.js",
    "/ui/overview.js": SCRIPT = "overview.js",
    "/ui/workers.js": SCRIPT = "workers.js",
    "/ui/search.js": SCRIPT = "search.js",
    "/ui/source.js": SCRIPT = "source.js",
    "/ui/collections.js": SCRIPT = "collections.js",
    "/ui/memory.js": SCRIPT = "memory.js",
    "/ui/graph.js": SCRIPT = "graph.js",
    "/ui/drawing.js": SCRIPT = "drawing.js",
];

pub(super) fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}
