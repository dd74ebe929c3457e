/** Whether a variant keeps acknowledged commits, as a badge; never by colour alone. */
import type { Safety } from "../format/report";
import { h } from "./dom";

const BADGES: Record<Safety["grade"], { readonly name: string; readonly sign: string }> = {
  keeps: { name: "keeps", sign: "✓" },
  unknown: { name: "unknown", sign: "?" },
  "may lose recent commits": { name: "loses", sign: "▲" },
  "does not keep": { name: "drops", sign: "▲" },
};

/** Green is for what was tested; what facts alone say has another colour, sign and word. */
const ASSUMED = { name: "assumed", sign: "○" };

export function safetyBadge(safety: Safety): HTMLElement {
  const isAssumed = safety.grade === "keeps" && safety.basis === "assumed";
  const { name, sign } = isAssumed ? ASSUMED : BADGES[safety.grade];
  const standby = [safety.power_loss, safety.primary_loss].filter((loss) => loss !== null);
  return h(
    "span",
    { class: `badge ${name}`, title: [...safety.reasons, ...standby].join("\n") },
    h("span", { "aria-hidden": "true" }, `${sign}\u00a0`),
    isAssumed || safety.basis === "tested" ? `${safety.grade} (${safety.basis})` : safety.grade,
  );
}
