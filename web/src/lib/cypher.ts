/** What can be typed next in a Cypher query. */

export interface Words {
  labels: string[];
  types: string[];
}

const KEYWORDS = ["MATCH", "OPTIONAL MATCH", "WHERE", "RETURN", "ORDER BY", "LIMIT", "SKIP", "WITH", "UNWIND", "CREATE", "MERGE", "SET",
  "DELETE", "DETACH DELETE", "REMOVE", "DISTINCT", "AND", "OR", "NOT", "IN", "STARTS WITH", "ENDS WITH", "CONTAINS", "IS NULL",
  "IS NOT NULL", "EXISTS", "CASE", "WHEN", "THEN", "ELSE", "END", "ASC", "DESC", "UNION", "CALL", "YIELD", "EXPLAIN"];
const FUNCTIONS = ["count(", "collect(", "sum(", "avg(", "min(", "max(", "size(", "length(", "nodes(", "relationships(", "labels(", "type(",
  "id(", "properties(", "keys(", "coalesce(", "toLower(", "toUpper(", "toString(", "toInteger(", "split(", "substring(", "replace(",
  "head(", "last(", "tail(", "range(", "shortestPath(", "date(", "datetime(", "duration("];
const PROPERTIES = ["name", "qualified_name", "path", "line", "start_line", "end_line", "language", "kind", "signature", "exported", "test",
  "id", "certainty", "type_only"];

export interface Completion {
  /** Where the word begins that is replaced. */
  from: number;
  options: string[];
}

/** Options for the word that ends at the caret, at most 12. */
export function complete(text: string, caret: number, words: Words): Completion {
  const before = text.slice(0, caret);
  const word = /[A-Za-z_]\w*$/.exec(before)?.[0] ?? "";
  const from = caret - word.length;
  const lead = before.slice(0, from);
  // Within a string nothing is completed.
  if ((lead.match(/(?<!\\)'/g)?.length ?? 0) % 2 === 1 || (lead.match(/(?<!\\)"/g)?.length ?? 0) % 2 === 1) return { from, options: [] };
  const isFitting = (option: string) => option.toLowerCase().startsWith(word.toLowerCase()) && option !== word;
  const options = (all: string[]) => ({ from, options: all.filter(isFitting).slice(0, 12) });
  if (/\[[^\]]*[:|]$/.test(lead)) return options(words.types);
  if (/(\(|:)[^)\]]*:$/.test(lead) || /:$/.test(lead)) return options(words.labels);
  if (/\w\.$/.test(lead)) return options(PROPERTIES);
  if (word.length < 2) return { from, options: [] };
  const inFunctions = FUNCTIONS.filter((it) => isFitting(it));
  return { from, options: [...KEYWORDS.filter(isFitting), ...inFunctions].slice(0, 12) };
}
