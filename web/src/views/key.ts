/** The key to the variants' colours. */

import type { Report } from "../format/report";
import { type ColourName, paletteColour } from "../model/colours";
import { h } from "./dom";

/** Variants that have a colour; the rest are grey, and the key says how many. */
export function variantKey(report: Report, colours: ReadonlyMap<string, number | null>): HTMLElement {
  const { variants } = report.analysis;
  const coloured = variants.filter((variant) => (colours.get(variant.id) ?? null) !== null);
  const grey = variants.length - coloured.length;
  return h(
    "ul",
    { class: "key" },
    ...coloured.map((variant) =>
      entry(variant.label, paletteColour(colours.get(variant.id) ?? 0), variant.is_aa_twin ? "twin" : null),
    ),
    grey > 0 && entry(`${grey} others`, "grey"),
  );
}

/** Colours of spans of time. */
type SpanName = "warmup" | "checkpoint" | "action";

/** A swatch in a colour of the style sheet, and what it stands for. */
export function entry(label: string, colour: ColourName | SpanName, kind: string | null = null): HTMLElement {
  return h("li", { class: kind }, h("i", { style: `background: var(--${colour})` }), label);
}
