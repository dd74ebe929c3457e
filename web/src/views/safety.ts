/** Whether a variant keeps acknowledged commits, as a badge; never by colour alone. */
import type { Safety } from "../format/report";
import { h } from "./dom";

const BADGES: Record<Safety["grade"], { readonly name: string; readonly sign: string }> = {
  keeps: { name: "keeps", sign: "✓" },
  unknown: { name: "unknown", sign: "?" },
  "may lose recent commits": { name: "loses", sign: "▲" },
  "does not keep": { name: "drops", sign: "▲" },
};

export function safetyBadge(safety: Safety): HTMLElement {
  const { name, sign } = BADGES[safety.grade];
  return h(
    "span",
    { class: `badge ${name}`, title: safety.reasons.join("\n") },
    h("span", { "aria-hidden": "true" }, `${sign}\u00a0`),
    safety.tested ? `${safety.grade} (tested)` : safety.grade,
  );
}
