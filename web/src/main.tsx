/** The frame: pages by the part of the address after #, and signing in. */

import "./style.css";
import { type FunctionComponent, render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { hasKey, signIn, signOut } from "./api/client";
import { parse, type Route } from "./lib/route";
import { Collections } from "./pages/collections";
import { Memory } from "./pages/memory";
import { Overview } from "./pages/overview";
import { Search } from "./pages/search";
import { lazy } from "./ui/lazy";
import { ErrorBox, Faint, Field, tell } from "./ui/parts";
import { chooseTheme, ThemeButton } from "./ui/theme";

export interface PageProperties {
  route: Route;
}

interface Page {
  title: string;
  view: FunctionComponent<PageProperties>;
}

const PAGES: Record<string, Page> = {
  overview: { title: "Overview", view: Overview },
  search: { title: "Search", view: Search },
  map: { title: "Code map", view: lazy(async () => (await import("./pages/map")).CodeMap) },
  graph: { title: "Graph", view: lazy(async () => (await import("./pages/graph")).Graph) },
  memory: { title: "Memory", view: Memory },
  collections: { title: "Collections", view: Collections },
  workers: { title: "Workers", view: lazy(async () => (await import("./pages/workers")).Workers) },
};

function App() {
  const [hash, setHash] = useState(location.hash);
  const [refused, setRefused] = useState<unknown>(undefined);
  const main = useRef<HTMLElement>(null);
  const route = parse(hash);
  const page = PAGES[route.page] ?? PAGES["overview"];
  const name = page && page === PAGES[route.page] ? route.page : "overview";

  const enter = async (credential: { token: string } | { link: string }) => {
    try {
      await signIn(credential);
      setRefused(undefined);
      tell("signed in");
    } catch (error) {
      // A link that was opened again is no problem for who is still signed in.
      if (!("link" in credential && hasKey())) setRefused(error);
    }
  };
  useEffect(() => {
    const changed = () => {
      const link = /^#sign-in=([0-9a-f]+)$/.exec(location.hash);
      if (link) {
        // The secret disappears from the address before anything else.
        history.replaceState(null, "", "/");
        void enter({ link: link[1] ?? "" }).then(() => setHash(location.hash));
        return;
      }
      setHash(location.hash);
    };
    const signedOut = () => setRefused((before: unknown) => before ?? null);
    window.addEventListener("hashchange", changed);
    window.addEventListener("signed-out", signedOut);
    document.addEventListener("keydown", goToSearch);
    changed();
    return () => {
      window.removeEventListener("hashchange", changed);
      window.removeEventListener("signed-out", signedOut);
      document.removeEventListener("keydown", goToSearch);
    };
  }, []);
  useEffect(() => {
    document.title = `${refused === undefined ? (page?.title ?? "") : "Sign in"} · Isolith`;
    if (refused === undefined) tell(page?.title ?? "");
  }, [name, refused]);

  if (hash.startsWith("#sign-in=") || !page) return <Faint>Signing in…</Faint>;
  const isOut = refused !== undefined;
  return (
    <>
      <button id="skip" class="skip" type="button" onClick={() => main.current?.focus()}>Skip to the content</button>
      <header>
        <strong class="brand">Isolith</strong>
        {isOut ? null : (
          <nav aria-label="Pages">
            {Object.entries(PAGES).map(([key, it]) => <a key={key} href={`#/${key}`} aria-current={key === name ? "page" : undefined}>{it.title}</a>)}
          </nav>
        )}
        <ThemeButton />
        {hasKey() && !isOut ? <button type="button" onClick={() => void signOut().finally(() => setRefused(null))}>Sign out</button> : null}
      </header>
      <main ref={main} tabIndex={-1} class={`page-${name}`}>
        {isOut ? <SignIn problem={refused} enter={(token) => void enter({ token })} /> : (
          <>
            <h1>{page.title}</h1>
            <page.view key={name} route={route} />
          </>
        )}
      </main>
      <div id="news" class="unseen" role="status" aria-live="polite" />
    </>
  );
}

function SignIn({ problem, enter }: { problem: unknown; enter: (token: string) => void }) {
  const token = useRef<HTMLInputElement>(null);
  useEffect(() => token.current?.focus(), []);
  return (
    <form class="sign-in" onSubmit={(event) => { event.preventDefault(); enter(token.current?.value ?? ""); }}>
      <h1>Sign in</h1>
      <Faint>
        This server needs its token. <code>isolith serve</code> shows it, or the file it is in, when it starts; by default that
        is <code>~/.local/state/isolith/token</code> on the server's machine.
      </Faint>
      {problem ? <ErrorBox error={problem} /> : null}
      <div class="row">
        <Field name="Token" grow><input ref={token} type="password" autocomplete="current-password" required /></Field>
        <button class="main">Sign in</button>
      </div>
    </form>
  );
}

/** The key / leads to the search field from everywhere. */
function goToSearch(event: KeyboardEvent) {
  const typing = event.target instanceof Element && event.target.closest("input, textarea, select");
  if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  if (parse(location.hash).page === "search") document.querySelector<HTMLInputElement>("main input[type=search]")?.focus();
  else location.hash = "#/search";
}

chooseTheme();
const place = document.getElementById("app");
if (place) render(<App />, place);
