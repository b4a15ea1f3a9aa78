/** What is defined in a file, from the graph. */

import { answer, api } from "../api/client";

export interface Definition {
  /** Its id in the graph: the file's path and the qualified name. */
  path: string;
  name: string;
  kind: string;
  line: number;
  start: number;
  end: number;
  callers: number;
}

const QUERY = `MATCH (n {path: $path}) WHERE n.qualified_name IS NOT NULL AND n.start_line IS NOT NULL
OPTIONAL MATCH (n)<-[r:CALLS]-()
RETURN n.id, n.qualified_name, n.kind, n.line, n.start_line, n.end_line, count(r) ORDER BY n.start_line`;

export async function definitions(path: string, signal: AbortSignal): Promise<Definition[]> {
  const body = { query: QUERY, params: { path }, limit: 5000 };
  const { rows } = await answer(api.POST("/v1/graph/query", { body, signal }));
  const found = (rows as [string, string, string, number, number, number, number][])
    .map(([path, name, kind, line, start, end, callers]) => ({ path, name, kind, line, start, end, callers }));
  // Variables inside of functions and classes are shown by what contains them.
  return found.filter((it) => it.end > it.start || !found.some((other) => other !== it && other.start <= it.start && other.end >= it.end));
}
