/** Addresses of the pages: what follows #. */

export interface Route {
  page: string;
  rest: string[];
  query: URLSearchParams;
}

export function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [page = "", ...rest] = path.split("/").map(decode);
  return { page, rest, query: new URLSearchParams(query) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function address(page: string, rest: string[] = [], query: Record<string, string | undefined> = {}): string {
  const known = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const parameters = new URLSearchParams(known).toString();
  return `#/${[page, ...rest.map(encodeURIComponent)].join("/")}${parameters ? `?${parameters}` : ""}`;
}
