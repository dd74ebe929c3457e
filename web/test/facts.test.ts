import { expect, test } from "vitest";
import { commonFolder } from "../src/model/facts";

const device = "/sys/devices/pci0000:00/block";

test.each([
  [[`${device}/b/x`, `${device}/b/y`, `${device}/b/queue/z`], `${device}/b/`],
  [[`${device}/b/x`, `${device}/bc/y`, `${device}/z`], `${device}/`],
  [[`${device}/x`, `${device}/y`], null],
  [[`${device}/x`, `${device}/y`, "statvfs(3)"], null],
  [["/proc/self/mountinfo", "/proc/self/mountinfo", "/proc/self/mountinfo"], null],
  [["/proc/meminfo", "/sys/x", "/dev/y"], null],
  [[], null],
])("of %j it is %s", (paths, folder) => {
  expect(commonFolder(paths)).toBe(folder);
});
