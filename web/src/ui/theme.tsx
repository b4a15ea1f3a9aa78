/** Light and dark: that of the system, or the one that was chosen here. */

import { useState } from "preact/hooks";

const KEY = "isolith-theme";
type Choice = "system" | "light" | "dark";

const chosen = (): Choice => {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
};

export function chooseTheme(choice: Choice = chosen()): void {
  if (choice === "system") {
    localStorage.removeItem(KEY);
    delete document.documentElement.dataset["theme"];
  } else {
    localStorage.setItem(KEY, choice);
    document.documentElement.dataset["theme"] = choice;
  }
}

export function ThemeButton() {
  const [choice, setChoice] = useState(chosen);
  const next: Choice = choice === "system" ? "light" : choice === "light" ? "dark" : "system";
  const change = () => {
    chooseTheme(next);
    setChoice(next);
  };
  return <button type="button" class="quiet" title={`Theme: ${choice}`} onClick={change}>{`Theme: ${choice}`}</button>;
}
