/** The theme of charts, read from the page's own style sheet, which knows light and dark. */
import type { Theme } from "../charts/theme";

/** The theme of the moment. */
export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: read("ink"),
    muted: read("muted"),
    rule: read("rule"),
    paper: read("surface"),
    warmup: read("warmup"),
    checkpoint: read("checkpoint"),
    action: read("action"),
    font: read("sans"),
    colours: {
      "c-1": read("c-1"),
      "c-2": read("c-2"),
      "c-3": read("c-3"),
      "c-4": read("c-4"),
      "c-5": read("c-5"),
      "c-6": read("c-6"),
      "c-7": read("c-7"),
      "c-8": read("c-8"),
      "shade-1": read("shade-1"),
      "shade-2": read("shade-2"),
      "shade-3": read("shade-3"),
      grey: read("grey"),
    },
  };
}

/** Calls `listener` when the reader changes between light and dark. */
export function onThemeChange(listener: () => void): void {
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", listener);
}
