/** The key to the variants' colours. */

import type { ColourName } from "../model/colours";
import { type Coloured, colourKey } from "../model/variants";
import { h } from "./dom";

/** Which colour is which variant, or which curve of a sweep. */
export function variantKey(analysis: Coloured, colours: ReadonlyMap<string, number | null>): HTMLElement {
  const entries = colourKey(analysis, colours);
  return h(
    "ul",
    { class: "key" },
    ...entries.map(({ label, colour, isTwin }) => entry(label, colour, isTwin ? "twin" : null)),
  );
}

/** Colours of spans of time. */
type SpanName = "warmup" | "checkpoint" | "action";

/** A swatch in a colour of the style sheet, and what it denotes. */
export function entry(label: string, colour: ColourName | SpanName, kind: string | null = null): HTMLElement {
  return h("li", { class: kind }, h("i", { style: `background: var(--${colour})` }), label);
}
