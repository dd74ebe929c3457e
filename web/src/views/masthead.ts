/** The head of the page: which run, the question and the answer; and, below the first chart, the figures that carry it. */
import type { Headline, Report } from "../format/report";
import { percentOrTimes, ratioParts, size } from "../model/units";
import { h } from "./dom";
import { safetyBadge } from "./safety";

const day = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeStyle: "short", timeZone: "UTC" });

/** Short, so that the first chart is on the first screen, too. */
export function masthead(report: Report): HTMLElement {
  const { run, analysis, host } = report;
  const versions = [...new Set(report.servers.map((server) => `PostgreSQL ${server.version}`))];
  const about = [
    `${day.format(new Date(run.created_unix_ns / 1e6))} UTC`,
    ...versions,
    `${host.cores} cores, ${size(host.memory_total_bytes)}`,
    host.os,
  ];
  return h(
    "header",
    { class: "masthead" },
    h(
      "p",
      { class: "kicker" },
      h("b", {}, "Plinth"),
      h("span", {}, analysis.experiment),
      h("span", {}, about.join(" · ")),
    ),
    run.status !== "complete" &&
      h(
        "p",
        { class: "notice" },
        `This run is ${run.status}${run.reason ? `: ${run.reason}` : ""}. Results are incomplete.`,
      ),
    run.altered !== "" && h("p", { class: "notice" }, h("strong", { class: "bad" }, run.altered)),
    h("p", { class: "question" }, analysis.question),
    ...answer(analysis.answer),
  );
}

/** The figures behind the answer, and what a sceptical reader must know of them. */
export function evidence(report: Report): HTMLElement {
  const { warnings: texts, warning_kinds: kinds } = report.analysis;
  return h(
    "section",
    { class: "evidence", "aria-label": "Figures behind the answer" },
    keyFigures(report),
    texts.length > 0 && warnings(texts, kinds),
  );
}

/** A long answer, as of a sweep, has its first sentence as the headline; the others are below. */
const MOST_HEADLINE = 200;

function answer(text: string): HTMLElement[] {
  const whole = text.replaceAll(" %", "\u00a0%"); // "95 %" stays in one line
  const [first = "", ...rest] = whole.length > MOST_HEADLINE ? whole.split(/(?<=\.) /) : [whole];
  return [h("h1", {}, first), ...(rest.length > 0 ? [h("p", { class: "answer" }, rest.join(" "))] : [])];
}

function keyFigures(report: Report): HTMLElement {
  const { analysis } = report;
  const figures: HTMLElement[] = [];
  const { headline } = analysis;
  const told = analysis.variants.find(({ id }) => id === headline?.variant);
  if (headline) figures.push(keyFigure(headline.title, effect(headline), headline.missing ?? headline.note));
  if (told) {
    figures.push(
      keyFigure("Commits in a power failure", safetyBadge(told.safety), told.safety.reasons.join("; ")),
    );
  }
  const { noise } = analysis;
  const isKnown = noise !== null && (noise.alarm || noise.ratio.more_trials === null);
  const floor = isKnown ? percentOrTimes(noise.smallest_ratio) : "n/a";
  figures.push(
    keyFigure(
      "Noise floor",
      floor,
      report.noise.replace(/^Noise floor: /, ""),
      analysis.noise?.alarm ?? false,
    ),
    keyFigure(
      "Trials",
      h("span", {}, String(analysis.trials_counted), h("small", {}, ` of ${analysis.trials_planned}`)),
      "counted, of those planned; all trials are shown below",
    ),
  );
  return h("dl", { class: "figures" }, ...figures);
}

/** The figure that the answer tells first: both come from the analysis, so that they cannot be of different effects. */
function effect({ ratio, figure, missing }: Headline): Node | string {
  if (missing !== null) return "undecided";
  if (ratio === null) return figure ?? "n/a";
  const parts = ratioParts(ratio);
  return h("span", {}, parts.figure, parts.interval && h("small", {}, ` ${parts.interval}`));
}

function keyFigure(name: string, figure: Node | string, note: string, alarming = false): HTMLElement {
  return h(
    "div",
    alarming ? { class: "alarming" } : {},
    h("dt", {}, name),
    h("dd", { class: "figure" }, figure),
    h("dd", { class: "note" }, note),
  );
}

/** The heaviest come first; the rest on demand. */
const MOST_WARNINGS = 4;

/** What is shown, and what on demand. That others were at work on the machine is always shown: nothing else on the page holds then. */
function split(texts: readonly string[], kinds: readonly string[]): [string[], string[]] {
  const busy = kinds.indexOf("busy machine");
  const isShown = (place: number) =>
    busy < MOST_WARNINGS ? place < MOST_WARNINGS : place < MOST_WARNINGS - 1 || place === busy;
  return [texts.filter((_, place) => isShown(place)), texts.filter((_, place) => !isShown(place))];
}

function warnings(texts: readonly string[], kinds: readonly string[]): HTMLElement {
  const list = (shown: readonly string[]) => h("ul", {}, ...shown.map((text) => h("li", {}, text)));
  const [first, rest] = split(texts, kinds);
  return h(
    "aside",
    { class: "warnings", "aria-label": "Warnings" },
    h("h2", {}, texts.length === 1 ? "One warning" : `${texts.length} warnings`),
    list(first),
    rest.length > 0 && h("details", {}, h("summary", {}, `${rest.length} more`), list(rest)),
  );
}
