/** Figures for people. SI base units come in; the unit that keeps a figure at one or more goes out. */
import type { Estimate, Interval, Panel } from "../format/report";

export type Unit = Panel["unit"];

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** Three significant digits, whole from 100 up: 0.0123, 3.14, 12,345. */
export function number(value: number): string {
  if (value === 0 || Math.abs(value) >= 100) return grouped.format(value);
  return String(Number(value.toPrecision(3)));
}

/** Always three significant digits, so that columns align: 85.0 µs, 1.23 ms, 264 ms. */
export function latency(ns: number): string {
  const [amount, unit] = LATENCIES.find(([amount]) => ns >= amount) ?? [1, "ns"];
  const figure = ns / amount;
  return `${figure >= 100 ? grouped.format(figure) : figure.toPrecision(3)} ${unit}`;
}

const LATENCIES = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
] as const;

/** Binary sizes: 1.5 MiB. */
export function size(bytes: number): string {
  return scaled(bytes, [
    [2 ** 40, "TiB"],
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
    [1, "B"],
  ]);
}

/** Decimal sizes, as drives are rated in them, with three significant digits: 16 kB. */
export function decimalSize(bytes: number): string {
  const rounded = Number(bytes.toPrecision(3));
  return scaled(rounded, [
    [1e15, "PB"],
    [1e12, "TB"],
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "kB"],
    [1, "B"],
  ]);
}

/** 45 s, 3 min 05 s, 1 h 20 min. */
export function duration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

function scaled(value: number, units: readonly (readonly [number, string])[]): string {
  const fallback = units[units.length - 1] ?? [1, ""];
  const [amount, unit] = units.find(([amount]) => Math.abs(value) >= amount) ?? fallback;
  return `${number(value / amount)} ${unit}`;
}

function counted(value: number): string {
  return Math.abs(value) >= 10_000
    ? scaled(value, [
        [1e6, "M"],
        [1e3, "k"],
      ])
    : number(value);
}

const WRITERS: Record<Unit, (value: number) => string> = {
  per_s: counted,
  ns: latency,
  bytes: size,
  bytes_per_s: (value) => `${size(value)}/s`,
  fraction: (value) => `${number(value * 100)} %`,
  cores: number,
  count: number,
};

/** What follows a panel's title; empty where each figure carries its unit. */
export const UNIT_NAMES: Record<Unit, string> = {
  per_s: "per second",
  ns: "",
  bytes: "",
  bytes_per_s: "",
  fraction: "",
  cores: "cores",
  count: "backends",
};

/** A figure in its unit, or n/a where it is not known. */
export function withUnit(value: number | null | undefined, unit: Unit): string {
  return value === null || value === undefined ? "n/a" : WRITERS[unit](value);
}

/** A round figure at an axis: 0, 10 ms, 16 MiB/s. */
export function tick(value: number, unit: Unit): string {
  return value === 0 ? "0" : WRITERS[unit](value).replace(/\.0+(?= )/, "");
}

/** [2.8, 3.4] */
export function interval(bounds: Interval, write: (value: number) => string): string {
  return `[${write(bounds.low)}, ${write(bounds.high)}]`;
}

/**
 * A ratio and its interval apart, for they are set in different type: 3.1× and [2.8, 3.4].
 *
 * The digits are those of the answer's sentence (plinth.model.figures): half the interval's width to one digit.
 */
export function ratioParts({ value, interval: bounds }: Estimate): {
  figure: string;
  interval: string | null;
} {
  if (!bounds) return { figure: `${number(value)}×`, interval: null };
  const half = (bounds.high - bounds.low) / 2;
  let digits = half <= 0 ? 4 : Math.min(4, Math.max(0, Math.ceil(-Math.log10(half))));
  const readsAsOne = (bound: number) => bound !== 1 && Number(bound.toFixed(digits)) === 1;
  while (digits < 4 && (readsAsOne(bounds.low) || readsAsOne(bounds.high))) digits += 1;
  const written = (figure: number) => decimals(figure, digits);
  return { figure: `${written(value)}×`, interval: interval(bounds, written) };
}

export const NOT_ENOUGH_TRIALS = "[not enough trials]";

/** What follows a figure: its interval, or that there are not enough trials for one. */
export function spread(estimate: Estimate, written: string | null): string | null {
  return estimate.interval === null && estimate.more_trials !== null ? NOT_ENOUGH_TRIALS : written;
}

/** How far a ratio above 1 is from it: 4.3 %, and from twice upwards 2.4×. */
export function percentOrTimes(ratio: number): string {
  return ratio < 2 ? `${Number(((ratio - 1) * 100).toPrecision(2))} %` : `${number(ratio)}×`;
}

/** With so many decimals, and with as many more as two significant digits take: 12.4, 0.12. */
function decimals(value: number, digits: number): string {
  const least = 1e-6;
  if (value > 0 && value < least) return `<${least.toFixed(6)}`;
  const own = value > 0 && value < 10 ? Math.max(digits, 1 - Math.floor(Math.log10(value))) : digits;
  return new Intl.NumberFormat("en", { minimumFractionDigits: own, maximumFractionDigits: own }).format(
    value,
  );
}
