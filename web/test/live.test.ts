import { describe, expect, test } from "vitest";
import type { LiveMessage, LivePage, SecondPassed, TrialEnded } from "../src/format/live";
import { endedTrials, headline, LiveRun, livePanels, notes, stateLines, timeLeft } from "../src/model/live";

type LiveEvent = LiveMessage["events"][number];

const page: LivePage = {
  panels: [
    { id: "tps", title: "Transactions", unit: "per_s", shape: "lines", scale: "linear", note: "" },
    { id: "latency", title: "Latency", unit: "ns", shape: "lines", scale: "log", note: "" },
  ],
  lines: [
    { panel: "tps", label: "done", metric: "done" },
    { panel: "tps", label: "failed", metric: "failed" },
    { panel: "latency", label: "p99", metric: "latency_p99_ns" },
  ],
  events: "/live/x/events",
};

const began: LiveEvent = { kind: "began", schema_version: 1, unix_ns: 1, trials: 4, cores: 2 };
const memory: LiveEvent = {
  kind: "variant",
  unix_ns: 1,
  id: "memory",
  label: "in memory",
  is_baseline: true,
  is_aa_twin: false,
};

function started(number: number, unix_s = 0, total_s = 10): LiveEvent {
  return {
    kind: "trial_started",
    unix_ns: unix_s * 1e9,
    number,
    block: 1,
    variant: "memory",
    trials: 4,
    warmup_s: 2,
    total_s,
  };
}

function second(at: number, changes: Partial<SecondPassed> = {}): LiveEvent {
  return {
    kind: "second",
    unix_ns: at * 1e9,
    t_ns: at * 1e9,
    length_ns: 1e9,
    phase: at < 2 ? "warmup" : "measure",
    done: 100 + at,
    failed: 0,
    skipped: null,
    latency_p50_ns: 1e6,
    latency_p95_ns: 2e6,
    latency_p99_ns: 3e6 + at,
    schedule_lag_p99_ns: null,
    host: {},
    ...changes,
  };
}

function ended(number: number, changes: Partial<TrialEnded> = {}): TrialEnded {
  return {
    kind: "trial_ended",
    unix_ns: 20e9,
    started_unix_ns: 10e9,
    number,
    block: 1,
    variant: "memory",
    tps: 100,
    latency_p50_ns: 1e6,
    latency_p99_ns: 2e6,
    failure: null,
    gaps: [],
    ...changes,
  };
}

function run(...events: LiveEvent[]): LiveRun {
  const made = new LiveRun();
  made.read({ events: [began, memory, ...events], problems: [] });
  return made;
}

const values = (live: LiveRun, panel: number) =>
  livePanels(live, page).panels[panel]?.lines.map(({ label, values }) => [label, values]);

describe("the running trial", () => {
  test("has a line for each figure that there is, growing with each second", () => {
    const live = run(started(1), second(0), second(1));
    expect(values(live, 0)).toEqual([["done", [100, 101]]]);
    live.read({ events: [second(2, { failed: 5 })], problems: [] });
    expect(values(live, 0)).toEqual([
      ["done", [100, 101, 102]],
      ["failed", [0, 0, 5]],
    ]);
    expect(livePanels(live, page)).toMatchObject({ end_s: 3, whole_s: 10, bin_s: 1 });
  });

  test("has a warm-up as long as it was, once its end is known", () => {
    const live = run(started(1), second(0, { phase: "warmup" }));
    expect(livePanels(live, page)).toMatchObject({
      whole_s: 10,
      spans: [{ kind: "warm-up", from_s: 0, to_s: 2 }],
    });
    live.read({ events: [second(1, { phase: "measure" })], problems: [] });
    expect(livePanels(live, page)).toMatchObject({
      whole_s: 9,
      spans: [{ kind: "warm-up", from_s: 0, to_s: 1 }],
    });
    expect(stateLines(live)[0]).toBe("2 s of 9 s");
  });

  test("has rates of its seconds' lengths, and no percentile of a short piece", () => {
    const live = run(started(1), second(0), second(1, { length_ns: 2.5e8, done: 25 }));
    expect(values(live, 0)).toEqual([["done", [100]]]);
    const short = run(started(1, 0, 1), second(0, { length_ns: 4e8 }), second(1));
    expect(values(short, 1)).toEqual([["p99", [null, 3e6 + 1]]]);
  });

  test("of a long trial is binned: the mean rate, and the highest latency", () => {
    const live = run(started(1, 0, 1800), second(0), second(1), second(2), second(3));
    expect(livePanels(live, page).bin_s).toBe(2);
    expect(values(live, 0)).toEqual([["done", [100.5, 102.5]]]);
    expect(values(live, 1)).toEqual([["p99", [3e6 + 1, 3e6 + 3]]]);
  });

  test("that claims to last for ages has no more bins than a chart has pixels", () => {
    const live = run(started(1, 0, 1e10), second(0), second(9e9));
    for (const { lines } of livePanels(live, page).panels)
      for (const line of lines) expect(line.values.length).toBeLessThanOrEqual(901);
  });

  test("says why there is nothing yet", () => {
    expect(livePanels(run(started(1)), page).panels[0]?.gap).toMatch(/no second/);
  });

  test("stays when it has ended, until the next one begins", () => {
    const live = run(started(1), second(0), ended(1));
    expect(live.isMeasuring).toBe(false);
    expect(live.seconds).toHaveLength(1);
    live.read({ events: [started(2)], problems: [] });
    expect(live.isMeasuring).toBe(true);
    expect(live.seconds).toHaveLength(0);
  });
});

describe("the state", () => {
  test("is the trial, the phase, or how the run ended", () => {
    expect(headline(new LiveRun(), null)).toBe("Nothing is recorded yet");
    expect(headline(run(started(3)), null)).toBe("Trial 3 of 4: in memory");
    const phase: LiveEvent = { kind: "phase", unix_ns: 1, text: "undo what this run made" };
    expect(headline(run(started(3), phase), null)).toBe("Undo what this run made");
    expect(headline(run(started(3)), { state: "complete", reason: null })).toBe("The run is complete");
    expect(headline(run(started(3)), { state: "killed", reason: "x" })).toMatch(/not running any more/);
  });

  test("a trial of a variant that is not known has its id", () => {
    const live = new LiveRun();
    live.read({ events: [began, started(1)], problems: [] });
    expect(headline(live, null)).toBe("Trial 1 of 4: memory");
  });

  test("has the time left by the trials before, which is not known without one that took time", () => {
    expect(timeLeft(run(started(1)))).toBeNull();
    const resumed = ended(1, { unix_ns: 10e9 });
    expect(timeLeft(run(resumed, started(2, 30)))).toBeNull();
    const live = run(ended(1), started(2, 30), { ...second(0), unix_ns: 34e9 });
    expect(timeLeft(live)).toBe(3 * 10 - 4);
    expect(stateLines(live)).toEqual(["1 s of 10 s", "about 26 s left for the trials"]);
  });

  test("has how far a long task is", () => {
    const progress: LiveEvent = {
      kind: "progress",
      unix_ns: 1,
      task: "load",
      done: 1000,
      total: 5000,
      unit: "rows",
      detail: "",
      left_s: 70,
    };
    expect(stateLines(run(progress))).toEqual(["load: 1,000 of 5,000 rows, about 1 min 10 s left"]);
  });
});

describe("the history", () => {
  test("is void when the log was begun anew", () => {
    const live = run(started(1), second(0), ended(1));
    live.read({ events: [began, memory, ended(1), started(2)], problems: [] });
    expect(live.ended).toHaveLength(1);
    expect(live.trial?.number).toBe(2);
    expect(live.variants).toHaveLength(1);
  });

  test("has the trials that have ended by variant, failed ones too", () => {
    const failed = ended(2, { tps: null, failure: "no" });
    const { analysis, trials } = endedTrials(run(ended(1), failed, ended(3, { variant: "of nobody" })));
    expect(trials.map((trial) => trial.number)).toEqual([1, 2, 3]);
    expect(analysis.variants.map(({ label, trials }) => [label, trials.map((each) => each.failure)])).toEqual(
      [["in memory", [null, "no"]]],
    );
  });

  test("counts the trials that have the same gap", () => {
    const gap: Partial<TrialEnded> = { gaps: [{ what: "pg_io", reason: "off" }] };
    const live = run(
      { kind: "note", unix_ns: 1, text: "a warning" },
      ended(1, gap),
      ended(2, gap),
      ended(3, { gaps: [{ what: "x", reason: "y" }] }),
    );
    live.read({ events: [], problems: ["a bad line"] });
    expect(notes(live)).toEqual([
      "a bad line",
      "a warning",
      "pg_io: n/a: off (2 trials)",
      "x: n/a: y (1 trial)",
    ]);
  });

  test("keeps no more problems than can be read", () => {
    const live = run();
    for (let at = 0; at < 1000; at += 1) live.read({ events: [], problems: [`bad ${at}`] });
    expect(live.problems.length).toBe(50);
    expect(live.problems.at(-1)).toBe("bad 999");
  });
});
