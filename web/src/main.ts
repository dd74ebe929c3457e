/** The page: reads the report that it contains and shows it. */
import "./styles/fonts.css";
import "./styles/page.css";
import "./styles/tables.css";
import "./styles/ranking.css";
import "./styles/charts.css";
import "./styles/facts.css";
import "./styles/narrow.css";
import "./styles/print.css";
import { parseReport } from "./format/read";
import type { Report } from "./format/report";
import { initialFocus, Store } from "./model/focus";
import { bottlenecksView } from "./views/bottlenecks";
import { contents } from "./views/chart";
import { checksView } from "./views/checks";
import { disclosureView } from "./views/disclosure";
import { h, openedSection } from "./views/dom";
import { durabilityView } from "./views/durability";
import { enduranceView } from "./views/endurance";
import { latencyView } from "./views/latency";
import { machineView } from "./views/machine";
import { evidence, masthead } from "./views/masthead";
import { newOrdersView } from "./views/new_orders";
import { objectivesView } from "./views/objectives";
import { publishedView } from "./views/published";
import { rankingView } from "./views/ranking";
import { reproduceView } from "./views/reproduce";
import { scalingView } from "./views/scaling";
import { settingsView } from "./views/settings";
import { storageView } from "./views/storage";
import { ownTables } from "./views/tables";
import { timelineView } from "./views/timeline";
import { tradeOffsView } from "./views/tradeoffs";
import { transactionsView } from "./views/transactions";
import { trialsView } from "./views/trials";

/** First what answers the question: the answer, and a chart of it. Then what a reader asks next. */
function page(report: Report): HTMLElement[] {
  const start = initialFocus(report);
  const focus = start && new Store(start);
  const scaling = scalingView(report);
  const sections = [
    scaling ?? rankingView(report),
    objectivesView(report),
    scaling && rankingView(report),
    tradeOffsView(report),
    durabilityView(report),
    publishedView(report),
    focus && trialsView(report, focus),
    focus && timelineView(report, focus),
    focus && latencyView(report, focus),
    newOrdersView(report),
    transactionsView(report),
    bottlenecksView(report),
    ...ownTables(report),
    settingsView(report),
    storageView(report),
    enduranceView(report),
    machineView(report),
    checksView(report),
    disclosureView(report),
    reproduceView(report),
  ].filter((section) => section !== null);
  const [first, ...others] = sections;
  return [
    navigation(sections),
    masthead(report),
    h("main", { id: "main" }, ...(first ? [first] : []), evidence(report), ...others),
    footer(report),
  ];
}

function navigation(sections: readonly HTMLElement[]): HTMLElement {
  const links = sections.map((section) => {
    const title = section.querySelector("h2")?.textContent ?? section.id;
    const link = h("a", { href: `#${section.id}` }, title);
    link.addEventListener("click", () => openedSection(section));
    return link;
  });
  return h("nav", { "aria-label": "Sections" }, ...links);
}

function footer(report: Report): HTMLElement {
  const { run } = report;
  return h(
    "footer",
    {},
    `Plinth ${run.plinth_version}, run ${run.run_id}. This page needs no network; the raw data is in the bundle.`,
  );
}

async function show(): Promise<void> {
  const place = document.getElementById("plinth-report");
  try {
    const report = parseReport(place?.textContent ?? "");
    // Charts measure their labels when they are drawn, so the font must be loaded first.
    await document.fonts.load("12px InterVariable");
    document.title = `${report.analysis.experiment}: ${report.analysis.answer}`;
    const elements = page(report);
    document.body.append(h("a", { class: "skip", href: "#main" }, "Skip to the results"), ...elements);
    await charted();
    window.plinth = { charts: contents };
    performance.mark("plinth-ready");
  } catch (error) {
    console.error(error);
    document.body.append(
      h("main", { class: "unreadable" }, error instanceof Error ? error.message : String(error)),
    );
  }
}

/** Charts near the window are drawn once they are laid out: before the second frame from now. */
function charted(): Promise<void> {
  return new Promise((resolve) => {
    requestAnimationFrame(() => requestAnimationFrame(() => resolve()));
  });
}

void show();
