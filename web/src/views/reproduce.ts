/** How to run it again. */
import type { Report } from "../format/report";
import { h, section } from "./dom";

export function reproduceView(report: Report): HTMLElement {
  const { reproduction, run } = report;
  return section(
    "again",
    "Run it again",
    `Save the experiment file below as experiment.toml. The seed, ${reproduction.seed}, reproduces the order of the trials and the generated work.`,
    code(reproduction.commands.join("\n"), "Commands"),
    h("h3", {}, "Experiment file"),
    code(reproduction.experiment_toml.trim(), "Experiment file"),
    h("h3", {}, "Versions"),
    h(
      "dl",
      { class: "facts" },
      ...reproduction.versions.map((each) => h("div", {}, h("dt", {}, each.name), h("dd", {}, each.version))),
      h("div", {}, h("dt", {}, "run"), h("dd", {}, run.run_id)),
      h("div", {}, h("dt", {}, "raw data"), h("dd", {}, run.bundle)),
    ),
    reproduction.steps.length > 0 &&
      h(
        "details",
        {},
        h("summary", {}, `${reproduction.steps.length} commands that the run executed`),
        h(
          "ol",
          { class: "steps" },
          ...reproduction.steps.map((step) =>
            h(
              "li",
              {},
              h("span", {}, step.title + (step.user ? `, as ${step.user}` : "")),
              code(step.command, step.title),
            ),
          ),
        ),
      ),
  );
}

function code(text: string, label: string): HTMLElement {
  return h("pre", { tabindex: 0, role: "region", "aria-label": label }, h("code", {}, text));
}
