/** Parts that are loaded when they are first shown. */

import { type FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ErrorBox, Faint } from "./parts";

export function lazy<P extends object>(load: () => Promise<FunctionComponent<P>>): FunctionComponent<P> {
  let known: FunctionComponent<P> | null = null;
  return function Lazy(properties: P) {
    const [state, setState] = useState<{ part: FunctionComponent<P> | null; error: unknown }>({ part: known, error: null });
    useEffect(() => {
      if (known) return;
      load().then(
        (part) => { known = part; setState({ part, error: null }); },
        (error: unknown) => setState({ part: null, error }));
    }, []);
    if (state.error) return <ErrorBox error={new Error("a part of this page cannot be loaded; the server may have been updated: reload the page")} />;
    return state.part ? <state.part {...properties} /> : <Faint>Loading…</Faint>;
  };
}
