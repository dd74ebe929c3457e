/** Each storage as the boxes it stands on, the top first. */
import type { Report, StackNode, StorageFacts } from "../format/report";
import { shortList } from "../model/settings";
import { size } from "../model/units";
import { h, section } from "./dom";
import { factList, row } from "./facts";

export function storageView(report: Report): HTMLElement {
  return section(
    "storage",
    "Storage",
    "What each data directory stands on, from its mount down to the device, and where each fact was read.",
    ...(report.storages.length > 0
      ? [h("div", { class: "storages" }, ...report.storages.map((storage) => storageBox(report, storage)))]
      : [h("p", { class: "na" }, "n/a: an external server's storage cannot be seen from here")]),
  );
}

function storageBox(report: Report, storage: StorageFacts): HTMLElement {
  const on = report.variants
    .filter((variant) => variant.storage === storage.name)
    .map((variant) => variant.label);
  return h(
    "article",
    { class: "storage" },
    h("h3", {}, storage.name, h("small", {}, ` ${storage.kind}`)),
    storage.volatile &&
      h(
        "p",
        { class: "volatile" },
        h("b", {}, "Volatile: "),
        storage.volatile_reason ?? "loses everything at a power cut",
      ),
    ...storage.notes.map((note) => h("p", { class: "notice" }, note)),
    h(
      "dl",
      { class: "facts" },
      row("path", storage.path),
      row("size", `${size(storage.total_bytes)}, ${size(storage.free_bytes)} free before the run`),
      row("variants", on.length > 0 ? shortList(on) : "none"),
    ),
    nested(storage.stack),
    storage.gaps.length > 0 && factList([], storage.gaps),
  );
}

/** Box in box: what is inside is what the outer stands on. */
function nested(stack: readonly StackNode[]): HTMLElement | null {
  const [top, ...below] = stack;
  if (!top) return null;
  return h(
    "div",
    { class: "layer" },
    h("p", { class: "layer-name" }, h("span", {}, top.kind), h("b", {}, top.name)),
    top.facts.length > 0 && factList(top.facts),
    nested(below),
  );
}
