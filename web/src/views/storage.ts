/** Each storage with the layers below it, and the I/O of its devices. */
import type { Report, StackNode, StorageFacts } from "../format/report";
import { shortList } from "../model/settings";
import { digest } from "../model/stack";
import { size } from "../model/units";
import { devicesTable } from "./devices";
import { h, section } from "./dom";
import { factList, row } from "./facts";
import { flushesView } from "./flushes";
import { ioView } from "./io";
import { loadedView } from "./loaded";
import { storageTables } from "./tables";
import { wearView } from "./wear";

export function storageView(report: Report): HTMLElement {
  return section(
    "storage",
    "Storage",
    "What each data directory is stored on, from its mount down to the device, with the source of each fact.",
    ...(report.storages.length > 0
      ? [h("div", { class: "storages" }, ...report.storages.map((storage) => storageBox(report, storage)))]
      : [h("p", { class: "na" }, "n/a: the storage of an external server cannot be inspected")]),
    loadedView(report),
    ...storageTables(report),
    devicesTable(report),
    flushesView(report),
    ioView(report),
    wearView(report),
  );
}

function storageBox(report: Report, storage: StorageFacts): HTMLElement {
  return h(
    "article",
    { class: "storage" },
    h("h3", {}, storage.name, h("small", {}, ` ${storage.kind}`)),
    storage.volatile &&
      h(
        "p",
        { class: "volatile" },
        h("b", {}, "Volatile: "),
        storage.volatile_reason ?? "loses everything in a power failure",
      ),
    ...storage.notes.map((note) => h("p", { class: "notice" }, note)),
    h(
      "dl",
      { class: "facts" },
      ...(storage.host == null ? [] : [row("host", storage.host)]),
      row("path", storage.path),
      row("size", `${size(storage.total_bytes)}, ${size(storage.free_bytes)} free before the run`),
      ...rolesOf(report, storage.name).map(([role, variants]) => row(`${role} of`, shortList(variants))),
    ),
    layers(storage.stack),
    storage.gaps.length > 0 && factList([], storage.gaps),
  );
}

/** What is stored on a storage, and for which variants: data, WAL, tablespaces. */
function rolesOf(report: Report, storage: string): [string, string[]][] {
  const roles = new Map<string, string[]>();
  for (const variant of report.variants) {
    for (const [role, name] of Object.entries(variant.storages)) {
      if (name === storage) roles.set(role, [...(roles.get(role) ?? []), variant.label]);
    }
  }
  return [...roles];
}

/** The layers as a list, each above the layers that it is stored on; the facts of each on demand. */
function layers(stack: readonly StackNode[]): HTMLElement | null {
  if (stack.length === 0) return null;
  return h("ol", { class: "stack" }, ...stack.map(layer));
}

function layer(node: StackNode): HTMLElement {
  const line = [h("span", {}, node.kind), h("b", {}, node.name), h("small", {}, digest(node))];
  return h(
    "li",
    { style: `--depth: ${node.depth ?? 0}` },
    node.facts.length > 0
      ? h("details", {}, h("summary", {}, ...line), factList(node.facts))
      : h("p", {}, ...line),
  );
}
