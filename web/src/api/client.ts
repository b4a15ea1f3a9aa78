/** Requests to /v1, and signing in. */

import createClient from "openapi-fetch";
import type { paths } from "./schema";

const KEY = "isolith-key";

export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, message: string, readonly hint: string) {
    super(message);
  }
}

const UNREACHABLE = () =>
  new ApiError(0, "unreachable", "the server does not answer", "it may have been stopped; start it again, and this page goes on");

/** The key without which a session's cookie is worth nothing. */
export const key = (): string => localStorage.getItem(KEY) ?? "none";

export const hasKey = (): boolean => localStorage.getItem(KEY) !== null;

/** A request of our own origin; its answer if it has one, otherwise an ApiError. */
export async function request(path: string, options: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { ...options, credentials: "same-origin", redirect: "error" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw UNREACHABLE();
  }
  if (response.ok) return response;
  if (response.status === 401 && path.startsWith("/v1/")) window.dispatchEvent(new CustomEvent("signed-out"));
  throw failure(response.status, await response.text());
}

function failure(status: number, text: string): ApiError {
  try {
    const { error } = JSON.parse(text) as { error: { code: string; message: string; hint: string } };
    return new ApiError(status, error.code, error.message, error.hint);
  } catch {
    // A proxy may answer with something else.
    return new ApiError(status, String(status), text.slice(0, 500), "");
  }
}

/** The endpoints, with the types of their description. */
export const api = createClient<paths>({
  baseUrl: "/",
  fetch: async (asked: Request) => {
    asked.headers.set("X-Isolith-UI", key());
    try {
      const response = await fetch(asked, { credentials: "same-origin", redirect: "error" });
      if (response.status === 401) window.dispatchEvent(new CustomEvent("signed-out"));
      return response;
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw UNREACHABLE();
    }
  },
});

interface Outcome<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** The answer of an endpoint, or its error thrown. */
export async function answer<T>(asked: Promise<Outcome<T>>): Promise<T> {
  const { data, error, response } = await asked;
  if (response.ok) return data as T;
  throw failure(response.status, typeof error === "string" ? error : JSON.stringify(error));
}

/** Signs in with the server's token or the secret of a link. */
export async function signIn(credential: { token: string } | { link: string }): Promise<void> {
  const headers = { "Content-Type": "application/json" };
  const begun = await request("/ui/session", { method: "POST", headers, body: JSON.stringify(credential) });
  localStorage.setItem(KEY, ((await begun.json()) as { key: string }).key);
}

export async function signOut(): Promise<void> {
  try {
    await request("/ui/session", { method: "DELETE", headers: { "X-Isolith-UI": key() } });
  } finally {
    localStorage.removeItem(KEY);
  }
}
