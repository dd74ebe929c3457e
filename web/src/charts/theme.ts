/** Colours and type of charts, taken from the page's own style sheet, which knows light and dark. */

export interface Theme {
  readonly ink: string;
  readonly muted: string;
  readonly rule: string;
  readonly paper: string;
  readonly grey: string;
  readonly warmup: string;
  readonly checkpoint: string;
  readonly font: string;
  /** The colour of a name such as "c-1", of the palette, or "shade-2". */
  readonly colour: (name: string) => string;
}

/** The theme of the moment. */
export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: read("ink"),
    muted: read("muted"),
    rule: read("rule"),
    paper: read("surface"),
    grey: read("grey"),
    warmup: read("warmup"),
    checkpoint: read("checkpoint"),
    font: read("sans"),
    colour: read,
  };
}

/** Calls `listener` when the reader changes between light and dark. */
export function onThemeChange(listener: () => void): void {
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", listener);
}
