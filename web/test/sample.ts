/** A small report for tests: invented figures, two variants and an A/A twin, two trials each. */
import type { Report, ReportTrial, SettingRow, Sweep, VariantResult } from "../src/format/report";

export const estimate = (value: number) => ({
  value,
  interval: { low: value * 0.95, high: value * 1.05, level: 0.95 },
  n: 2,
  method: "test",
  note: null,
  more_trials: null,
});

export function variant(id: string, tps: number | null, changes: Partial<VariantResult> = {}): VariantResult {
  return {
    id,
    label: id,
    levels: { storage: id },
    rank: 1,
    group: null,
    is_baseline: false,
    is_aa_twin: false,
    tps: tps === null ? null : estimate(tps),
    latency: null,
    nopm: null,
    efficiency: null,
    transactions: [],
    statements: [],
    failed: 0,
    retried: 0,
    open_loop: null,
    engine_cpu_ns_per_transaction: null,
    bottleneck: null,
    waits: [],
    process_io: null,
    work: null,
    ceiling: null,
    endurance: null,
    durability: null,
    safety: { grade: "keeps", reasons: [], tested: null },
    trials: [],
    ...changes,
  };
}

/** A sweep over clients with the curves that are given. */
export function sweepOf(
  curves: readonly { label: string; points: { variant: string; value: number }[] }[],
): Sweep {
  return {
    factors: [
      { name: "workload.clients", title: "clients", unit: "count", levels: [], is_workload: false },
      { name: "storage", title: "storage", unit: null, levels: [], is_workload: false },
    ],
    compared: ["storage"],
    strata: [],
    curves: curves.map(({ label, points }) => ({
      factor: "workload.clients",
      label,
      levels: { storage: label },
      points,
      gains_until: null,
      knee: null,
      knee_missing: null,
      fit: null,
      fit_missing: null,
      schedule: null,
      sentence: "",
    })),
    effects: null,
  };
}

export function trial(number: number, id: string, changes: Partial<ReportTrial> = {}): ReportTrial {
  return {
    number,
    block: 1,
    variant: id,
    status: "complete",
    failure: null,
    excluded: null,
    started_unix_ns: 0,
    warmup_s: 1,
    end_s: 3.5,
    columns: [
      [10, 20, 30, 40],
      [1, null, 3, 4],
      [1, 1, 1, 1],
      [2, 2, null, 2],
    ],
    marks: [],
    panel_gaps: [],
    checks: [],
    devices: [],
    errors: [],
    cache: null,
    restored: null,
    outage: null,
    ...changes,
  };
}

export function point(
  number: number,
  tps: number | null,
  changes: Partial<VariantResult["trials"][number]> = {},
) {
  return {
    number,
    block: 1,
    tps,
    latency_p50_ns: null,
    latency_p95_ns: null,
    latency_p99_ns: null,
    latency_max_ns: null,
    failed: 0,
    steady: null,
    excluded: null,
    failure: null,
    bottleneck: null,
    work: null,
    transactions: [],
    nopm: null,
    observer_cores: null,
    ...changes,
  };
}

export function setting(name: string, cells: Record<string, string[]>, unread: string[] = []): SettingRow {
  return {
    name,
    kind: "setting",
    default: null,
    cells: Object.entries(cells).map(([text, variants]) => ({ text, source: "test", variants })),
    unread,
  };
}

const text = (title: string) => ({ title, note: `How to read ${title}.` });

export function report(changes: Partial<Report> = {}): Report {
  const variants = [
    variant("memory", 3000, {
      safety: { grade: "does not keep", reasons: ["volatile"], tested: null },
      trials: [point(1, 2900), point(4, 3010)],
    }),
    variant("disk", 1000, {
      is_baseline: true,
      rank: 2,
      trials: [point(2, 990), point(5, 1400, { excluded: "rule" })],
    }),
    variant("disk-aa", 1010, {
      is_aa_twin: true,
      rank: 2,
      trials: [point(3, 1010), point(6, null, { failure: "killed" })],
    }),
  ];
  return {
    schema_version: 1,
    run: {
      run_id: "test",
      plinth_version: "0",
      created_unix_ns: 0,
      ended_unix_ns: null,
      status: "complete",
      reason: null,
      bundle: "bundle",
    },
    analysis: {
      schema_version: 1,
      run_id: "test",
      experiment: "test",
      question: "?",
      answer: "!",
      variants,
      sweep: null,
      cut_controls: null,
      groups: [],
      pareto: [],
      objectives: [],
      comparisons: [
        {
          variant: "memory",
          baseline: "disk",
          ratio: estimate(3),
          ratio_p_value: null,
          p_value: 0.01,
          verdict: "better",
          latency_p99: null,
          more_trials: null,
          note: null,
          sentence: "faster",
        },
      ],
      noise: { ratio: estimate(1.01), smallest_ratio: 1.05, alarm: false },
      noise_missing: null,
      rating: null,
      preparations: [],
      warnings: [],
      trials_planned: 6,
      trials_counted: 4,
    },
    noise: "",
    observation: "Observation took 0.7% of one core.",
    drive_life: "Drive life: n/a.",
    objectives: [],
    curves: [],
    ratios: null,
    effects: [],
    effects_missing: null,
    pareto: [],
    pareto_gaps: [],
    sections: {
      objectives: text("Objectives"),
      groups: text("Groups"),
      pareto: text("Trade-offs"),
      sweep: text("Scaling"),
      effects: text("Effects of factors"),
      durability: text("Power cuts"),
      published: text("Study"),
      new_orders: text("New orders"),
      transactions: text("Types"),
      bottlenecks: text("Bottlenecks"),
      server_work: text("Work"),
      process_io: text("Process I/O"),
      ceilings: text("Ceilings"),
      io: text("I/O"),
      loaded: text("Loaded"),
      standbys: text("Standbys"),
      network: text("Network"),
      outages: text("Faults"),
      endurance: text("Endurance"),
      wear: text("Wear"),
    },
    variants: variants.map(({ id, label, levels }) => ({
      id,
      label,
      levels,
      storages: { data: id },
      workload: `${id} work`,
      latency_curve: [],
    })),
    servers: [],
    wear: null,
    doctor: null,
    settings: [],
    panels: [
      { id: "tps", title: "Transactions", unit: "per_s", shape: "lines", scale: "linear", note: "" },
      { id: "waits", title: "Waits", unit: "count", shape: "stack", scale: "linear", note: "" },
      { id: "device", title: "Device", unit: "fraction", shape: "lines", scale: "linear", note: "" },
    ],
    series: [
      { panel: "tps", label: "done" },
      { panel: "tps", label: "failed" },
      { panel: "waits", label: "CPU" },
      { panel: "waits", label: "IO" },
      { panel: "device", label: "disk0" },
    ],
    bin_s: 1,
    trials: [
      trial(1, "memory"),
      trial(2, "disk"),
      trial(3, "disk-aa"),
      trial(4, "memory"),
      trial(5, "disk", { excluded: "rule" }),
      trial(6, "disk-aa", { failure: "killed", columns: [null, null, null, null, null] }),
    ],
    storages: [],
    flushes: [],
    io: [],
    published: null,
    datasets: [],
    standbys: [],
    tpcc: null,
    links: [],
    outages: [],
    host: {
      cores: 2,
      memory_total_bytes: 1,
      memory_available_bytes: 1,
      is_root: false,
      can_mount: false,
      kernel: "",
      os: "",
      cpu_model: "",
      facts: [],
      gaps: [],
    },
    gaps: [],
    reproduction: { commands: [], experiment_toml: "", overrides: [], seed: 1, versions: [], steps: [] },
    disclosures: [],
    ...changes,
  };
}
