//! Code in files of other languages: components and notebooks.

use isolith_types::EdgeKind::{Calls, Documents, Imports};

use crate::expect;

#[test]
fn components_are_modules() {
    let files = [
        ("src/orders.ts", "export function place(id: string) {}\n"),
        (
            "src/Card.vue",
            "<template>\n  <p>{{ place(1) }}</p>\n</template>\n<script setup lang=\"ts\">\n\
             import { place } from './orders'\nfunction repeat() {\n  place('a')\n}\n</script>\n",
        ),
        (
            "src/Page.svelte",
            "<script>\n  import Card from './Card.vue';\n  import { place } from './orders';\n  \
             function open() {\n    place('b');\n  }\n</script>\n<Card />\n",
        ),
    ];
    expect(
        &[Calls, Imports],
        &files,
        &[
            "src/Card.vue -IMPORTS> src/orders.ts",
            "src/Card.vue -IMPORTS> src/orders.ts#place",
            "src/Card.vue#repeat -CALLS> src/orders.ts#place",
            "src/Page.svelte -IMPORTS> src/Card.vue",
            "src/Page.svelte -IMPORTS> src/orders.ts",
            "src/Page.svelte -IMPORTS> src/orders.ts#place",
            "src/Page.svelte#open -CALLS> src/orders.ts#place",
        ],
    );
}

#[test]
fn notebooks_use_modules_and_know_their_lines() {
    let notebook = "{\"cells\": [\n{\"cell_type\": \"code\", \"source\": [\n\"import tools\\n\",\n\
                    \"def f():\\n\",\n\"    tools.mend()\\n\"]},\n\
                    {\"cell_type\": \"code\", \"source\": [\n\"%cd x\\n\",\n\"f()\\n\"]}]}";
    let files = [
        ("a/tools.ipynb", notebook),
        ("src/tools.py", "def mend(): ...\n"),
        ("work.ipynb", notebook),
    ];
    expect(
        &[Calls, Imports],
        &files,
        &[
            "a/tools.ipynb -CALLS> a/tools.ipynb#f",
            "a/tools.ipynb -IMPORTS> src/tools.py",
            "a/tools.ipynb#f -CALLS> src/tools.py#mend",
            "work.ipynb -CALLS> work.ipynb#f",
            "work.ipynb -IMPORTS> src/tools.py",
            "work.ipynb#f -CALLS> src/tools.py#mend",
        ],
    );
    let graph = crate::project::Files::of(&files);
    let f = &graph.0["work.ipynb"].definitions[0];
    assert_eq!((f.line, f.end_line), (4, 5));
    let lines: Vec<u32> = graph.0["work.ipynb"].references.iter().map(|it| it.line).collect();
    assert_eq!(lines, [5, 5, 8]);
}

#[test]
fn documents_name_code() {
    let files = [
        ("tools.py", "def mend_all(): ...\ndef other_one(): ...\n"),
        ("a.rst", "Use\n===\n\nCall :func:`tools.mend_all` or ``other_one()``.\n"),
        ("b.adoc", "== Use\n\nCall `mend_all`.\n"),
    ];
    expect(
        &[Documents],
        &files,
        &[
            "a.rst#Use -DOCUMENTS> tools.py#mend_all",
            "a.rst#Use -DOCUMENTS> tools.py#other_one",
            "b.adoc#Use -DOCUMENTS> tools.py#mend_all",
        ],
    );
}
