// Requests to /v1, and signing in.

const KEY = "isolith-key";

export class ApiError extends Error {
  constructor(status, { code, message, hint }) {
    super(message);
    Object.assign(this, { status, code, hint });
  }
}

async function send(path, options) {
  let response;
  try {
    response = await fetch(path, { ...options, credentials: "same-origin", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, {
      code: "unreachable",
      message: "the server does not answer",
      hint: "it may have been stopped; start it again and reload this page",
    });
  }
  const text = await response.text();
  let document = null;
  try {
    document = text ? JSON.parse(text) : null;
  } catch {
    // A proxy may answer with something else.
  }
  if (response.ok) return document;
  const error = document?.error ?? { code: String(response.status), message: text.slice(0, 500), hint: "" };
  throw new ApiError(response.status, error);
}

/// Asks an endpoint. Parameters without a value are left out.
export async function api(path, { method = "GET", query = {}, body, signal } = {}) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") parameters.set(name, value);
  }
  const headers = { "X-Isolith-UI": localStorage.getItem(KEY) ?? "none" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const url = "/v1" + path + (parameters.size ? "?" + parameters : "");
  try {
    return await send(url, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    if (error.status === 401) window.dispatchEvent(new CustomEvent("signed-out"));
    throw error;
  }
}

/// Signs in with {token} or {link}.
export async function signIn(credential) {
  const headers = { "Content-Type": "application/json" };
  const begun = await send("/ui/session", { method: "POST", headers, body: JSON.stringify(credential) });
  localStorage.setItem(KEY, begun.key);
}

export const hasKey = () => localStorage.getItem(KEY) !== null;

export async function signOut() {
  await send("/ui/session", { method: "DELETE", headers: { "X-Isolith-UI": localStorage.getItem(KEY) ?? "none" } });
  localStorage.removeItem(KEY);
}

/// Only the answer to the last question counts: earlier ones are cancelled.
export function latest() {
  let current = null;
  const ask = async (run) => {
    current?.abort();
    const own = (current = new AbortController());
    try {
      const answer = await run(own.signal);
      return own.signal.aborted ? undefined : answer;
    } catch (error) {
      if (own.signal.aborted) return undefined;
      throw error;
    }
  };
  ask.cancel = () => current?.abort();
  return ask;
}
