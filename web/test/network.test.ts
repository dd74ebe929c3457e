// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { networkView } from "../src/views/network";
import { report } from "./sample";

test("a row of each link, and nothing without a network", () => {
  expect(networkView(report({}))).toBeNull();
  const link = {
    link: "primary to a",
    asked: "delay 5 ms each way",
    trials: 3,
    round_trip: "10.2 ms, of which 10 ms are the delays",
    packets: "1,203 packets, 2 lost",
  };
  const text = networkView(report({ links: [link] }))?.textContent ?? "";
  for (const value of Object.values(link)) expect(text).toContain(String(value));
});
