/** Selecting the trials that are shown second by second. */
import type { Report } from "../format/report";
import { type Focus, type Store, trialsOf, typicalTrial } from "../model/focus";
import { h } from "./dom";
import { trialOf } from "./focused";

type Side = keyof Focus;

/** Selects the trial, or the one to compare it with. */
export function picker(report: Report, focus: Store<Focus>, which: Side): HTMLElement {
  const name = which === "left" ? "Trial of" : "compared with";
  const variants = h("select", {
    "aria-label": which === "left" ? "Variant" : "Variant to compare with",
    "data-side": which,
  });
  if (which === "right") variants.append(h("option", { value: "" }, "none"));
  for (const variant of report.analysis.variants)
    variants.append(h("option", { value: variant.id }, variant.label));
  const trials = h("select", {
    "aria-label": which === "left" ? "Trial" : "Trial to compare with",
    "data-trials": which,
  });

  variants.addEventListener("change", () => {
    const trial = variants.value === "" ? undefined : typicalTrial(report, variants.value);
    if (trial) focus.set({ ...focus.value, [which]: trial.number });
    else if (which === "right") focus.set({ ...focus.value, right: null });
  });
  trials.addEventListener("change", () => focus.set({ ...focus.value, [which]: Number(trials.value) }));

  focus.watch((now) => {
    const number = now[which];
    const variant = number === null ? "" : (trialOf(report, number)?.variant ?? "");
    variants.value = variant;
    trials.hidden = number === null;
    trials.replaceChildren(
      ...trialsOf(report, variant).map((trial) => h("option", { value: trial.number }, trialName(trial))),
    );
    trials.value = String(number);
  });
  return h("label", { class: `picker ${which}` }, h("span", {}, name), variants, trials);
}

function trialName(trial: {
  number: number;
  block: number;
  failure: string | null;
  excluded: string | null;
}): string {
  const state = trial.failure !== null ? " (failed)" : trial.excluded !== null ? " (not counted)" : "";
  return `trial ${trial.number}, block ${trial.block}${state}`;
}
