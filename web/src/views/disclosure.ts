/** The disclosures that a reader of benchmarks asks for, and which of them this one has. */
import type { Disclosure, Report } from "../format/report";
import { h, section } from "./dom";

const SIGNS: Record<Disclosure["status"], string> = { yes: "✓", partly: "◐", no: "✕" };

export function disclosureView(report: Report): HTMLElement {
  const count = (status: Disclosure["status"]) =>
    report.disclosures.filter((each) => each.status === status).length;
  const partly = count("partly");
  return section(
    "disclosure",
    "Can it be trusted?",
    `What a sceptical reader asks of a benchmark, checked by Plinth itself: ${count("yes")} of ${report.disclosures.length} hold${partly > 0 ? `, and ${partly} in part` : ""}.`,
    h(
      "ul",
      { class: "disclosure" },
      ...report.disclosures.map((each) =>
        h(
          "li",
          { class: each.status },
          h("span", { class: "sign", role: "img", "aria-label": each.status }, SIGNS[each.status]),
          h("span", {}, h("b", {}, each.claim), h("small", {}, each.evidence)),
        ),
      ),
    ),
  );
}
