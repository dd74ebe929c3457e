/** The host and the servers. */
import type { HostFacts, Report, ReportServer } from "../format/report";
import { shortList } from "../model/settings";
import { size } from "../model/units";
import { doctorView } from "./doctor";
import { h, section } from "./dom";
import { factList, row } from "./facts";
import { labelOf } from "./focused";

export function machineView(report: Report): HTMLElement {
  return section(
    "machine",
    "Machine and server",
    "The host and the servers, with the source of each fact.",
    h(
      "div",
      { class: "columns" },
      hostBox(Object.keys(report.hosts).length > 0 ? "Host of the run" : "Host", report.host),
      ...Object.entries(report.hosts).map(([name, host]) => hostBox(`Host ${name}`, host)),
      doctorView(report),
      ...report.servers.map((server) => serverBox(report, server)),
    ),
  );
}

function hostBox(title: string, host: HostFacts): HTMLElement {
  return h(
    "article",
    {},
    h("h3", {}, title),
    h(
      "dl",
      { class: "facts" },
      row("processor", `${host.cpu_model}, ${host.cores} cores usable`),
      row(
        "memory",
        `${size(host.memory_total_bytes)}, ${size(host.memory_available_bytes)} available before the run`,
      ),
      row("kernel", host.kernel),
      row("operating system", host.os),
      row("started as root", host.is_root ? "yes" : "no"),
    ),
    factList(host.facts, host.gaps),
  );
}

function serverBox(report: Report, server: ReportServer): HTMLElement {
  const checksums = server.data_checksums === null ? "n/a: not read" : server.data_checksums ? "on" : "off";
  return h(
    "article",
    {},
    h("h3", {}, `PostgreSQL ${server.version}`),
    h(
      "dl",
      { class: "facts" },
      row("programs", server.origin),
      row("runs as", `${server.run_as}: ${server.run_as_reason}`),
      row(
        "data directories",
        server.data_directories.length > 0 ? server.data_directories.join(", ") : "n/a: external",
      ),
      row("data checksums", checksums),
      row(
        "memory",
        server.memory_limit_bytes == null
          ? "all of the machine's"
          : `at most ${size(server.memory_limit_bytes)}`,
      ),
      row("variants", shortList(server.variants.map((id) => labelOf(report, id)))),
    ),
  );
}
