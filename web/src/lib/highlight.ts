/** Highlighted code as lines of elements, by highlight.js; loaded when code is first shown. */

import type { Element, ElementContent, Root } from "hast";
import type { LanguageFn } from "lowlight";
import { createLowlight } from "lowlight";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import go from "highlight.js/lib/languages/go";
import haskell from "highlight.js/lib/languages/haskell";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import lua from "highlight.js/lib/languages/lua";
import markdown from "highlight.js/lib/languages/markdown";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import scala from "highlight.js/lib/languages/scala";
import sql from "highlight.js/lib/languages/sql";
import swift from "highlight.js/lib/languages/swift";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const LANGUAGES: Record<string, LanguageFn> = {
  bash, c, cpp, csharp, css, go, haskell, ini, java, javascript, json, kotlin, lua, markdown, php, python, ruby, rust, scala, sql,
  swift, typescript, xml, yaml,
};

/** Names of ours that differ. */
const NAMES: Record<string, string> = {
  shell: "bash", "c++": "cpp", "c#": "csharp", html: "xml", toml: "ini", tsx: "typescript", jsx: "javascript", vue: "xml", svelte: "xml", scss: "css",
};

const engine = createLowlight(LANGUAGES);

export interface Span {
  text: string;
  kind: string;
}

/** The lines of a text as spans, each with the classes of what it is. */
export function highlight(text: string, language: string): Span[][] {
  const name = NAMES[language.toLowerCase()] ?? language.toLowerCase();
  if (!engine.registered(name)) return text.split("\n").map((line) => [{ text: line, kind: "" }]);
  return lines(engine.highlight(name, text));
}

function lines(root: Root): Span[][] {
  const found: Span[][] = [[]];
  const visit = (node: Root["children"][number] | ElementContent, kind: string) => {
    if (node.type === "text") {
      node.value.split("\n").forEach((part, at) => {
        if (at > 0) found.push([]);
        if (part) found.at(-1)?.push({ text: part, kind });
      });
    } else if (node.type === "element") {
      const own = classes(node);
      node.children.forEach((child) => visit(child, own || kind));
    }
  };
  root.children.forEach((child) => visit(child, ""));
  return found;
}

function classes(element: Element): string {
  const names = element.properties["className"];
  return Array.isArray(names) ? names.join(" ") : "";
}
