// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { loadMachinesView } from "../src/views/load_machines";
import { report } from "./sample";

test("a row of each machine, and nothing without a fleet", () => {
  expect(loadMachinesView(report({}))).toBeNull();
  const machine = {
    variant: "disk",
    machine: "client1",
    trials: 3,
    clients: 4,
    done: "1,204 tps",
    latency: "p50 2.1 ms, p99 9 ms",
    busy: "engine 25 %, 8 cores 31 % busy",
    start: "began 0.4 ms late at most, clock known to 0.1 ms",
  };
  const text = loadMachinesView(report({ machines: [machine] }))?.textContent ?? "";
  for (const value of Object.values(machine)) expect(text).toContain(String(value));
});
