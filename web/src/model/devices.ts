/** What the block devices under each variant did: medians of its complete trials. */
import type { DeviceIo, Report } from "../format/report";
import { median } from "./median";

export interface DeviceRow {
  readonly variant: string;
  readonly roles: string;
  readonly device: string;
  readonly written_per_s: number | null;
  readonly read_per_s: number | null;
  readonly writes_per_s: number | null;
  readonly flushes_per_s: number | null;
}

/** By variant, in the report's order, then in the order of the devices below it. */
export function deviceRows(report: Report): DeviceRow[] {
  return report.variants.flatMap((variant) => {
    const trials = report.trials.filter(
      (trial) => trial.variant === variant.id && trial.status === "complete" && trial.end_s > 0,
    );
    const keys = new Map(
      trials.flatMap((trial) => trial.devices).map((device) => [keyOf(device), device] as const),
    );
    return [...keys].map(([key, { device, roles }]) => {
      const rate = (figure: (io: DeviceIo) => number | null) =>
        median(
          trials.flatMap((trial) =>
            trial.devices
              .filter((io) => keyOf(io) === key)
              .map((io) => figure(io))
              .map((total) => (total === null ? null : total / trial.end_s)),
          ),
        );
      return {
        variant: variant.label,
        roles: roles.join(", "),
        device,
        written_per_s: rate((io) => io.written_bytes),
        read_per_s: rate((io) => io.read_bytes),
        writes_per_s: rate((io) => io.writes),
        flushes_per_s: rate((io) => io.flushes),
      };
    });
  });
}

function keyOf(io: DeviceIo): string {
  return `${io.roles.join()} ${io.device}`;
}
