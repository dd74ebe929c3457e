/** In which state the trials began, where the experiment asked for one. */
import type { Report } from "../format/report";
import { h } from "./dom";

export function preparationsView({ analysis }: Report): HTMLElement | null {
  if (analysis.preparations.length === 0) return null;
  return h(
    "div",
    { class: "footnote" },
    h("p", {}, "State at the beginning of the trials:"),
    h("ul", {}, ...analysis.preparations.map((sentence) => h("li", {}, sentence))),
  );
}
