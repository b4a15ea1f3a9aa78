/** Server-sent events with our header, which the browser's EventSource cannot send. */

import { key, request } from "./client";

export interface ServerEvent {
  event: string;
  data: string;
}

/** Splits what arrives into events; keeps what is not complete. */
export class EventParser {
  private rest = "";

  push(text: string): ServerEvent[] {
    const parts = (this.rest + text).replaceAll("\r\n", "\n").split("\n\n");
    this.rest = parts.pop() ?? "";
    return parts.flatMap((part) => {
      let [event, data] = ["message", null as string | null];
      for (const line of part.split("\n")) {
        const [, name, value] = /^(event|data): ?(.*)$/.exec(line) ?? [];
        if (name === "event") event = value ?? "";
        if (name === "data") data = data === null ? (value ?? "") : `${data}\n${value ?? ""}`;
      }
      return data === null ? [] : [{ event, data }];
    });
  }
}

/** The events of an address, until it ends or is aborted. */
export async function* events(path: string, options: RequestInit = {}): AsyncGenerator<ServerEvent> {
  const headers = { Accept: "text/event-stream", "X-Isolith-UI": key(), ...options.headers };
  const response = await request(path, { ...options, headers });
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new EventParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* parser.push(value);
    }
  } finally {
    // Nobody listens any more.
    void reader.cancel().catch(() => undefined);
  }
}
