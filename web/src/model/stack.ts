/** The layers below a storage, each in one line. */
import type { Fact, StackNode } from "../format/report";
import { latency, size } from "./units";

/** The facts of each kind that are shown, in this order; of other kinds the size. */
const SHOWN_FACTS: Record<string, readonly string[]> = {
  mount: ["options"],
  filesystem: ["options"],
  disk: ["size_bytes", "model", "rotational", "scheduler", "write_cache"],
  loop: ["size_bytes", "direct_io", "backing_file"],
  md: ["size_bytes", "level", "raid_disks", "chunk_size"],
  dm: ["size_bytes", "name"],
  zram: ["size_bytes", "comp_algorithm"],
  zfs: ["devices"],
  "emulated disk": ["size_bytes", "flush_latency_ns", "read_latency_ns", "write_latency_ns", "lie", "faults"],
};
const OTHERS = ["size_bytes"];

/** "8.0 GiB, direct io, /srv/image": the most important facts of a layer. */
export function digest(node: StackNode): string {
  return (SHOWN_FACTS[node.kind] ?? OTHERS)
    .map((name) => node.facts.find((fact) => fact.name === name))
    .map((fact) => (fact ? words(fact) : null))
    .filter((text) => text)
    .join(", ");
}

function words(fact: Fact): string | null {
  const { name, value } = fact;
  const readable = name.replaceAll("_", " ");
  if (value === null || value === false) return null;
  if (value === true) return readable;
  if (Array.isArray(value)) return value.join(",") || null;
  if (name.endsWith("_bytes")) return size(Number(value));
  if (name.endsWith("_ns")) return `${readable.replace(/ ns$/, "")} ${latency(Number(value))}`;
  return ["model", "options", "backing_file", "name", "write_cache"].includes(name)
    ? String(value)
    : `${readable} ${value}`;
}
