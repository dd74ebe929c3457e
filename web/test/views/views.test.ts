// @vitest-environment happy-dom
import { describe, expect, test } from "vitest";
import type { Report, TransactionResult, VariantResult } from "../../src/format/report";
import { initialFocus, Store } from "../../src/model/focus";
import { bottlenecksView } from "../../src/views/bottlenecks";
import { checksView } from "../../src/views/checks";
import { devicesTable } from "../../src/views/devices";
import { disclosureView } from "../../src/views/disclosure";
import { doctorView } from "../../src/views/doctor";
import { enduranceView } from "../../src/views/endurance";
import { latencyView } from "../../src/views/latency";
import { loadedView } from "../../src/views/loaded";
import { evidence, masthead } from "../../src/views/masthead";
import { newOrdersView } from "../../src/views/new_orders";
import { picker } from "../../src/views/picker";
import { preparationsView } from "../../src/views/preparations";
import { rankingView } from "../../src/views/ranking";
import { reproduceView } from "../../src/views/reproduce";
import { settingsView } from "../../src/views/settings";
import { storageView } from "../../src/views/storage";
import { transactionsView } from "../../src/views/transactions";
import { wearView } from "../../src/views/wear";
import { estimate, report, setting, trial, variant } from "../sample";
import { bodyRows, cellsOf, tableOf, texts } from "./cells";

const LATENCY = {
  count: 12345,
  p50_ns: 1e6,
  p90_ns: 2e6,
  p95_ns: 3e6,
  p99_ns: 4e6,
  p999_ns: 5e6,
  max_ns: 6e6,
  mean_ns: 1.2e6,
  stddev_ns: 1e5,
};

/** The sample report, its variants changed. */
function withVariants(change: (variant: VariantResult) => Partial<VariantResult>): Report {
  const { analysis, ...rest } = report();
  const variants = analysis.variants.map((each) => ({ ...each, ...change(each) }));
  return { ...rest, analysis: { ...analysis, variants } };
}

function focusOf(all: Report) {
  const focus = initialFocus(all);
  if (!focus) throw new Error("the sample has trials");
  return new Store(focus);
}

describe("the state in which trials began", () => {
  test("is stated where one was asked for, as text", () => {
    const all = report();
    expect(preparationsView(all)).toBeNull();
    const preparations = ["<b>disk</b>: cold cache in 3 of 3 trials"];
    const view = preparationsView({ ...all, analysis: { ...all.analysis, preparations } });
    expect([...(view?.querySelectorAll("li") ?? [])].map((item) => item.textContent)).toEqual(preparations);
  });
});

describe("ranking", () => {
  test("has a row for each variant, and what is not known is n/a with the reason", () => {
    const view = rankingView(
      withVariants(({ id }) => (id === "memory" ? { latency: LATENCY } : { tps: null })),
    );
    const rows = texts(view);
    expect(rows[0]?.slice(0, 2)).toEqual(["1", "memory"]);
    expect(rows[0]?.[3]).toBe("3,000 [2,850, 3,150]");
    expect(rows[0]?.[5]).toBe("1.00 ms / 4.00 ms");
    expect(rows[0]?.[8]).toBe("better");
    expect(rows[1]?.[1]).toBe("diskbaseline");
    expect(rows[1]?.[3]).toBe("n/a: no trial counts");
    expect(rows[2]?.[0]).toBe("=");
  });

  test("a variant that may lose commits is hatched; one that keeps them is not", () => {
    const [memory, disk] = bodyRows(rankingView(report()));
    const fills = (row: Element | undefined) =>
      [...(row?.querySelectorAll("rect") ?? [])].map((rect) => rect.getAttribute("fill"));
    expect(fills(memory)).toEqual([null, "url(#hatch-dense)"]);
    expect(fills(disk)).toEqual([null]);
  });

  test("the baseline stays in sight of many variants; the rest come on demand", () => {
    const all = report();
    const variants = Array.from({ length: 20 }, (_, place) =>
      variant(`v${place}`, 100 - place, { is_baseline: place === 19 }),
    );
    const view = rankingView({ ...all, analysis: { ...all.analysis, variants } });
    const table = view.querySelector("table");
    expect(bodyRows(view).filter((row) => row.classList.contains("more"))).toHaveLength(4);
    expect(bodyRows(view)[19]?.className).toBe("baseline");
    expect(table?.classList.contains("short")).toBe(true);
    const button = view.querySelector("button");
    expect(button?.textContent).toBe("Show all 20 variants");
    button?.click();
    expect(table?.classList.contains("short")).toBe(false);
    expect(view.querySelector("button")).toBeNull();
  });

  test("a label is text, whatever is in it", () => {
    const view = rankingView(withVariants(() => ({ label: "<img src=x>" })));
    expect(view.querySelector("img")).toBeNull();
    expect(texts(view)[0]?.[1]).toBe("<img src=x>");
  });
});

describe("bottlenecks", () => {
  const found: NonNullable<VariantResult["bottleneck"]> = {
    kind: "WAL flush",
    trials: 2,
    of: 3,
    trial: 4,
    finding: {
      kind: "WAL flush",
      confidence: "high",
      sentence: "the WAL flush took 80 % of the time",
      evidence: [{ what: "WAL flush", value: 0.8, unit: "fraction", source: "pg_stat_activity" }],
    },
  };

  test("is left out where no trial counts", () => {
    expect(bottlenecksView(report())).toBeNull();
  });

  test("takes title, note and the cost of observing from the report", () => {
    const all = withVariants(({ id }) => (id === "disk" ? { bottleneck: found } : {}));
    const view = bottlenecksView(all);
    if (!view) throw new Error("one bottleneck is known");
    expect(view.querySelector("h2")?.textContent).toBe("Bottlenecks");
    expect(view.querySelector(".lead")?.textContent).toBe("How to read Bottlenecks.");
    expect(view.querySelector(".footnote")?.textContent).toBe(all.observation);
    expect(texts(tableOf(view, "Bottlenecks"))).toEqual([
      ["disk", "WAL flush", "2 of 3", "high", "the WAL flush took 80 % of the time"],
    ]);
    expect(texts(tableOf(view, "Evidence for disk"))).toEqual([["WAL flush", "80 %", "pg_stat_activity"]]);
    expect(view.textContent).toContain("n/a: wait events were not read");
  });

  test("a process group that could not be read has its reason over the figures", () => {
    const view = bottlenecksView(
      withVariants(({ id }) =>
        id === "disk"
          ? {
              bottleneck: found,
              process_io: {
                groups: [
                  {
                    group: "backends",
                    read_bytes_per_s: estimate(2000),
                    written_bytes_per_s: estimate(1000),
                  },
                ],
                gaps: [{ what: "checkpointer", reason: "Permission denied" }],
              },
            }
          : {},
      ),
    );
    if (!view) throw new Error("one bottleneck is known");
    expect(texts(tableOf(view, "Process I/O"))).toEqual([
      ["disk", "backends", "2 kB/s [1.9 kB/s, 2.1 kB/s]", "1 kB/s [950 B/s, 1.05 kB/s]"],
      ["disk", "checkpointer", "n/a: Permission denied"],
    ]);
  });
});

describe("transactions by type", () => {
  const type = (name: string, changes: Partial<TransactionResult> = {}): TransactionResult => ({
    name,
    share_asked: 0.9,
    share: 0.912,
    tps: estimate(1200),
    latency: LATENCY,
    done: 12345,
    failed: 0,
    retried: 3,
    retries: 4,
    ...changes,
  });

  test("are grouped by variant, and what is not known is n/a", () => {
    const rare = type("<b>rare</b>", { share: null, latency: null, failed: null, retried: null });
    const view = transactionsView(
      withVariants(({ id }) => (id === "disk" ? { transactions: [type("lookup"), rare] } : {})),
    );
    expect(view?.querySelectorAll("th[scope=rowgroup]")).toHaveLength(1);
    const rows = texts(tableOf(view as HTMLElement, "Types"));
    expect(rows[0]).toEqual(["disk"]);
    expect(rows[1]?.slice(0, 4)).toEqual(["lookup", "1,200 [1,140, 1,260]", "91.2 % (90.0 %)", "1.00 ms"]);
    expect(rows[1]?.slice(-2)).toEqual(["3", "0"]);
    expect(rows[2]?.[0]).toBe("<b>rare</b>");
    expect(rows[2]?.slice(-9).every((cell) => cell === "n/a")).toBe(true);
  });

  test("have no section where every workload is of one type", () => {
    expect(transactionsView(report())).toBeNull();
  });
});

describe("new orders per minute", () => {
  const tpcc = {
    notice: "Derived <b>from</b> it.",
    deviations: [
      { text: "no pacing", variants: [] },
      { text: "read committed", variants: ["disk", "<i>"] },
    ],
  };

  test("have a row for each variant that has them, the notice and every deviation, as text", () => {
    const all = withVariants(({ id }) =>
      id === "memory"
        ? { nopm: estimate(12000), efficiency: estimate(0.5) }
        : id === "disk"
          ? { nopm: estimate(6000) }
          : {},
    );
    const view = newOrdersView({ ...all, tpcc }) as HTMLElement;
    expect(texts(tableOf(view, "New orders"))).toEqual([
      ["memory", "12,000 [11,400, 12,600]", "50.0 % [47.5 %, 52.5 %]"],
      ["disk", "6,000 [5,700, 6,300]", "n/a: not paced"],
    ]);
    expect(view.textContent).toContain(tpcc.notice);
    expect([...view.querySelectorAll("li")].map((item) => item.textContent)).toEqual([
      "no pacing",
      "read committed (disk, <i>)",
    ]);
  });

  test("have no section where no variant has that workload", () => {
    expect(newOrdersView(report())).toBeNull();
  });
});

describe("latency", () => {
  test("percentiles of each variant, n/a where nothing was measured", () => {
    const all = withVariants(({ id }) => (id === "disk" ? { latency: LATENCY } : {}));
    const view = latencyView(all, focusOf(all));
    const rows = texts(tableOf(view, "Latency percentiles"));
    expect(rows[1]?.slice(0, 2)).toEqual(["disk", "1.00 ms"]);
    expect(rows[1]?.at(-2)).toBe("12,345");
    expect(rows[0]?.slice(1, 3)).toEqual(["n/a", "n/a"]);
    expect(view.textContent).toContain("n/a: latencies of individual statements were not recorded");
  });

  test("statements of the variants in focus stand side by side, and follow the focus", () => {
    const of = (text: string, p99_ns: number) => ({
      script: "simple.sql",
      statement: 0,
      line: 3,
      text,
      latency: { ...LATENCY, p99_ns },
    });
    const all = withVariants(({ id }) => ({ statements: [of("SELECT 1", id === "disk" ? 7e6 : 8e6)] }));
    const focus = focusOf(all);
    const view = latencyView(all, focus);
    expect(texts(tableOf(view, "Latency of statements"))).toEqual([
      ["SELECT 1 simple.sql, line 3", "1.00 ms", "7.00 ms", "1.00 ms", "8.00 ms"],
    ]);
    focus.set({ left: 1, right: null });
    expect(texts(tableOf(view, "Latency of statements"))[0]).toHaveLength(3);
  });
});

describe("checks and gaps", () => {
  test("a clean run says so", () => {
    const view = checksView(report());
    expect(view.textContent).toContain("n/a: no checks were made.");
    expect(view.textContent).toContain("None.");
    expect(view.textContent).toContain("Nothing is missing.");
  });

  test("failed checks, failed transactions and gaps have their place and reason", () => {
    const one = trial(1, "disk", {
      checks: [
        { name: "rows", ok: true, expected: "1", got: "1" },
        { name: "commits", ok: false, expected: "5", got: "4" },
      ],
      errors: [
        {
          kind: "sql",
          sqlstate: "40001",
          script: "a.sql",
          line: 2,
          statement: 0,
          message: "serialize",
          count: 3,
          retried: 0,
          first_ns: 0,
        },
      ],
    });
    const view = checksView(
      report({ trials: [one], gaps: [{ what: "CPU", where: "host", reason: "no /proc" }] }),
    );
    expect(view.textContent).toContain("1 of 2 checks passed: rows; commits.");
    expect(view.textContent).toContain("Trial 1, commits: expected 5, got 4");
    expect(texts(tableOf(view, "Failed transactions"))).toEqual([
      ["1", "3", "sql 40001", "a.sql, line 2", "serialize"],
    ]);
    expect(texts(tableOf(view, "What is not available"))).toEqual([["CPU", "host", "n/a: no /proc"]]);
  });
});

describe("settings", () => {
  test("what is not as in the baseline is marked; what was not read says so", () => {
    const rows = [
      setting("wal_level", { minimal: ["memory"], replica: ["disk"] }, ["disk-aa"]),
      setting("fsync", { on: ["memory", "disk", "disk-aa"] }),
    ];
    const view = settingsView(report({ settings: rows }));
    const differing = tableOf(view, "Settings that differ");
    expect(texts(differing)).toEqual([["wal_level", "minimal", "replica", "n/a: not read", ""]]);
    expect([...differing.querySelectorAll("mark")].map((mark) => mark.textContent)).toEqual(["minimal"]);
    expect(cellsOf(bodyRows(differing)[0])[3]?.className).toBe("na");
    expect(texts(tableOf(view, "Settings that are the same in all variants: 1"))).toEqual([
      ["fsync", "on", "test", ""],
    ]);
  });
});

describe("devices and storages", () => {
  const io = {
    device: "sda",
    roles: ["data"],
    reads: 7,
    read_bytes: 7 * 1024,
    writes: 70,
    written_bytes: 7 * 2 ** 20,
    flushes: null,
  };

  test("device I/O is per second of the trial; what was not counted is n/a", () => {
    const view = devicesTable(report({ trials: [trial(2, "disk", { devices: [io] })] }));
    expect(view && texts(view)).toEqual([
      ["disk", "data", "sda", "2 MiB/s", "2 KiB/s", "20", "n/a: not counted"],
    ]);
    expect(devicesTable(report())).toBeNull();
  });

  test("an external server's storage is a gap, and so are the bytes written to disks", () => {
    const view = storageView(report());
    expect(view.textContent).toContain("What each data directory is stored on");
    expect(view.textContent).toContain("n/a: the storage of an external server cannot be inspected");
    expect(wearView(report()).textContent).toBe(
      "n/a: bytes written to the disks were not counted in this run",
    );
  });

  test("loaded tables have sizes, and indexes without known levels are n/a", () => {
    const loaded = {
      schema_version: 1,
      cluster: "disk",
      kind: "pgbench",
      load_s: 75,
      tasks: [{ name: "rows", duration_s: 60 }],
      tables: [
        {
          name: "accounts",
          rows: 100000,
          size_bytes: 2 ** 20,
          indexes: [{ name: "pkey", size_bytes: 2 ** 15, levels: null, lookup_buffers: 3 }],
        },
      ],
      gaps: [],
    };
    const view = loadedView({ ...report(), datasets: [loaded] });
    expect(view && texts(view)).toEqual([["accounts", "100,000", "1 MiB", "pkey 32 KiB", "n/a", "3"]]);
    expect(view?.querySelector("h4")?.textContent).toBe("disk pgbench in 1 min 15 s: rows 1 min 00 s");
  });
});

test("endurance is left out where nothing was counted", () => {
  expect(enduranceView(report())).toBeNull();
});

test("the machine before the run is a gap where it was not examined", () => {
  expect(doctorView(report()).textContent).toContain("n/a: the machine was not examined before this run");
});

test("the disclosures are counted, and each has its status in words", () => {
  const view = disclosureView(
    report({
      disclosures: [
        { claim: "A", status: "yes", evidence: "a" },
        { claim: "B", status: "partly", evidence: "b" },
        { claim: "C", status: "no", evidence: "c" },
      ],
    }),
  );
  expect(view.querySelector(".lead")?.textContent).toContain("1 of 3 hold, and 1 in part.");
  const signs = [...view.querySelectorAll(".sign")].map((sign) => sign.getAttribute("aria-label"));
  expect(signs).toEqual(["yes", "partly", "no"]);
});

test("question and answer stand at the head with what is left out of a run that did not end, figures below", () => {
  const all = report();
  const run = { ...all.run, status: "interrupted" as const, reason: "SIGINT" };
  const shown = { ...all, run, noise: "Noise floor: small." };
  const head = masthead(shown);
  expect(head.querySelector("h1")?.textContent).toBe("!");
  expect(head.querySelector(".question")?.textContent).toBe("?");
  expect(head.querySelector(".notice")?.textContent).toBe(
    "This run is interrupted: SIGINT. Results are incomplete.",
  );
  const figures = [...evidence(shown).querySelectorAll(".figures > div")].map((each) => each.textContent);
  expect(figures[0]).toContain("throughput of memory relative to disk");
  expect(figures[2]).toContain("small.");
  expect(figures[3]).toContain("4 of 6");
});

test("a picker shows the focus, and sets it", () => {
  const all = report();
  const focus = focusOf(all);
  const label = picker(all, focus, "right");
  const [variants, trials] = label.querySelectorAll("select");
  if (!variants || !trials) throw new Error("a picker has two selects");
  expect(variants.value).toBe("memory");
  expect([...trials.options].map((option) => option.textContent)).toEqual([
    "trial 1, block 1",
    "trial 4, block 1",
  ]);
  variants.value = "";
  variants.dispatchEvent(new Event("change"));
  expect(focus.value.right).toBeNull();
  expect(trials.hidden).toBe(true);
});

test("the commands and the experiment file are shown as they are", () => {
  const reproduction = {
    ...report().reproduction,
    commands: ["plinth run experiment.toml"],
    experiment_toml: 'name = "<b>"\n',
    seed: 7,
  };
  const view = reproduceView(report({ reproduction }));
  expect([...view.querySelectorAll("pre")].map((each) => each.textContent)).toEqual([
    "plinth run experiment.toml",
    'name = "<b>"',
  ]);
  expect(view.querySelector(".lead")?.textContent).toContain("The seed, 7, reproduces");
});

test("where a schedule decides throughput, the bars and the ranking are of p99 latency", () => {
  const all = report();
  const [first] = all.analysis.comparisons;
  if (!first) throw new Error("there is a comparison");
  const variants = all.analysis.variants.map((each) => ({
    ...each,
    ranked_by: "latency" as const,
    trials: each.trials.map((one) => ({ ...one, latency_p99_ns: 30_000_000 })),
  }));
  const comparisons = [{ ...first, latency_p99: { ...first.ratio, value: 0.25, interval: null } }];
  const shown = {
    ...all,
    ranking: "Ranked by p99 latency.",
    analysis: { ...all.analysis, variants, comparisons },
  };
  const view = rankingView(shown);
  expect(view.textContent).toContain(
    "Ranked by p99 latency. Median of the p99 latencies of each variant's trials.",
  );
  const ticks = [...view.querySelectorAll(".axis span")].map((each) => each.textContent);
  expect(ticks).toEqual(["0", "10 ms", "20 ms", "30 ms"]);
});
