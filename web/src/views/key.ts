/** Keys: what each line, marker and band of a chart denotes, drawn as it is in the chart. */
import { SWATCH, swatchShapes, swatchWidth } from "../charts/swatch";
import { areaSwatch, type KeyEntry, type Look, type Swatch, variantSwatch } from "../model/looks";
import { h, svg } from "./dom";

/** Says which name is pointed at; null for none. */
export type Point = (label: string | null) => void;

/** A key. With `point` its entries are buttons: the pointer or the focus of the keyboard points at one, a click keeps it. */
export function keyOf(entries: readonly KeyEntry[], point?: Point): HTMLElement {
  if (!point) return h("ul", { class: "key" }, ...entries.map((one) => entry(one)));
  let kept: string | null = null;
  const buttons = entries.map(({ label, swatch }) => {
    const button = h("button", { type: "button", "aria-pressed": "false" }, drawing(swatch), label);
    button.addEventListener("pointerenter", () => point(label));
    button.addEventListener("pointerleave", () => point(kept));
    button.addEventListener("focus", () => point(label));
    button.addEventListener("blur", () => point(kept));
    button.addEventListener("click", () => {
      kept = kept === label ? null : label;
      for (const [place, each] of buttons.entries())
        each.setAttribute("aria-pressed", String(entries[place]?.label === kept));
      point(kept);
    });
    return button;
  });
  return h("ul", { class: "key" }, ...buttons.map((button) => h("li", {}, button)));
}

/** An entry that is not a button. */
export function entry({ label, swatch }: KeyEntry): HTMLElement {
  return h("li", {}, drawing(swatch), label);
}

/** An entry of an area. */
export function areaEntry(label: string, colour: Swatch["colour"]): HTMLElement {
  return entry({ label, swatch: areaSwatch(colour) });
}

/** The name of a variant in a table, after its swatch. */
export function named(label: string, look: Look | undefined): readonly (Node | string)[] {
  return look ? [drawing(variantSwatch(look)), label] : [label];
}

function drawing(swatch: Swatch): SVGElement {
  const width = swatchWidth(swatch);
  const { height } = SWATCH;
  const shapes = swatchShapes(swatch, `var(--${swatch.colour})`, "var(--surface)");
  return svg(
    "svg",
    { class: "swatch", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    ...shapes.map(({ tag, attributes }) => svg(tag, { ...attributes })),
  );
}

/** Colours of spans of time. */
type SpanName = "warmup" | "checkpoint" | "action";

/** The entry of a span of time. */
export function spanEntry(label: string, colour: SpanName): HTMLElement {
  return h("li", { class: "area" }, h("i", { style: `background: var(--${colour})` }), label);
}
