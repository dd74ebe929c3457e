/** Facts with their sources. */
import type { Fact, Gap } from "../format/report";
import { commonFolder } from "../model/facts";
import { size } from "../model/units";
import { h, notAvailable } from "./dom";

/** Facts, then what could not be read. A folder that most were read from is named once. */
export function factList(facts: readonly Fact[], gaps: readonly Gap[] = []): HTMLElement {
  const folder = commonFolder(facts.map((fact) => fact.source));
  return h(
    "dl",
    { class: "facts" },
    folder && h("div", { class: "folder" }, h("dt", {}, "read from"), h("dd", {}, source(folder))),
    ...facts.map((fact) => row(fact.name, factText(fact), fact.source.replace(folder ?? "", ""))),
    ...gaps.map((gap) => h("div", {}, h("dt", {}, gap.what), h("dd", {}, notAvailable(gap.reason)))),
  );
}

export function row(name: string, value: string | Node, from: string | null = null): HTMLElement {
  return h("div", {}, h("dt", {}, name), h("dd", {}, h("span", {}, value), from && source(from)));
}

/** Where something was read. A path may be broken after each slash. */
function source(path: string): HTMLElement {
  const parts = path.split(/(?<=\/)/).flatMap((part, place) => (place === 0 ? [part] : [h("wbr"), part]));
  return h("span", { class: "source" }, ...parts);
}

/** A fact's value for people: sizes in their unit, booleans as yes and no. */
function factText(fact: Fact): string {
  if (fact.value === null) return "n/a: not known";
  if (Array.isArray(fact.value)) return fact.value.join(", ");
  if (typeof fact.value === "boolean") return fact.value ? "yes" : "no";
  if (typeof fact.value === "number" && fact.name.endsWith("_bytes")) return size(fact.value);
  return String(fact.value);
}
