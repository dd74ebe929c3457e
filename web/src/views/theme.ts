/** The theme of charts, read from the page's own style sheet, which knows light and dark. */
import { type Theme, themeOf } from "../charts/theme";

/** The theme of the moment. */
export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  return themeOf((name) => style.getPropertyValue(`--${name}`).trim());
}

/** Calls `listener` when the reader changes between light and dark. */
export function onThemeChange(listener: () => void): void {
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", listener);
}
