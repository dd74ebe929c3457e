/** Facts with where each was read. */
import type { Fact, Gap } from "../format/report";
import { size } from "../model/units";
import { h, notAvailable } from "./dom";

export function factList(facts: readonly Fact[], gaps: readonly Gap[] = []): HTMLElement {
  return h(
    "dl",
    { class: "facts" },
    ...facts.map((fact) => row(fact.name, factText(fact), fact.source)),
    ...gaps.map((gap) => h("div", {}, h("dt", {}, gap.what), h("dd", {}, notAvailable(gap.reason)))),
  );
}

export function row(name: string, value: string | Node, source: string | null = null): HTMLElement {
  return h(
    "div",
    {},
    h("dt", {}, name),
    h("dd", {}, h("span", {}, value), source && h("span", { class: "source" }, ...breakable(source))),
  );
}

/** A path may be broken after each slash. */
function breakable(path: string): (Node | string)[] {
  return path.split(/(?<=\/)/).flatMap((part, place) => (place === 0 ? [part] : [h("wbr"), part]));
}

/** A fact's value for people: sizes in their unit, booleans as yes and no. */
function factText(fact: Fact): string {
  if (fact.value === null) return "n/a: not known";
  if (Array.isArray(fact.value)) return fact.value.join(", ");
  if (typeof fact.value === "boolean") return fact.value ? "yes" : "no";
  if (typeof fact.value === "number" && fact.name.endsWith("_bytes")) return size(fact.value);
  return String(fact.value);
}
