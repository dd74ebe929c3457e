import { expect, test } from "vitest";
import { waitsByKind } from "../src/model/bottlenecks";

const share = (kind: string, event: string, processes: number) => ({ kind, event, processes });

test("clients come first, the commonest wait first, and what hardly was is left out", () => {
  const waits = [
    share("checkpointer", "IO:DataFileSync", 0.9),
    share("client backend", "CPU", 1),
    share("client backend", "Lock:tuple", 0.001),
    share("autovacuum worker", "CPU", 0.1),
    share("client backend", "IO:WalSync", 6),
  ];
  expect(waitsByKind(waits).map(({ kind, event }) => `${kind} ${event}`)).toEqual([
    "client backend IO:WalSync",
    "client backend CPU",
    "autovacuum worker CPU",
    "checkpointer IO:DataFileSync",
  ]);
});

test("no more than a screen of them", () => {
  const waits = Array.from({ length: 50 }, (_, i) => share("client backend", `Lock:${i}`, i + 1));
  expect(waitsByKind(waits)).toHaveLength(20);
});
