/** Ends of axes: round figures, few of them, the same for charts that are read side by side. */

export interface Axis {
  readonly max: number;
  readonly step: number;
}

/** The end of a linear axis from 0 and its step, of 1, 2, 2.5 or 5 times a power of ten: the tightest of `steps` at most. */
export function linearAxis(highest: number, steps = 4): Axis {
  if (!(highest > 0)) return { max: 1, step: 1 };
  const power = 10 ** Math.floor(Math.log10(highest / steps));
  return tightest(
    highest,
    steps,
    [1, 2, 2.5, 5, 10, 20].map((digit) => digit * power),
  );
}

/** A round distance between the ticks of an axis that ends where its data does. */
export function roundStep(range: number, steps: number): number {
  const power = 10 ** Math.floor(Math.log10(range / steps));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step * steps >= range) ?? 10 * power;
}

/** Like linearAxis, for sizes: steps are powers of two or three quarters of one, so that ticks are short in KiB, MiB, ... */
export function binaryAxis(highest: number, steps = 4): Axis {
  if (!(highest > 0)) return { max: 1, step: 1 };
  const power = 2 ** Math.floor(Math.log2(highest / steps));
  return tightest(
    highest,
    steps,
    [1, 1.5, 2, 3, 4].map((digit) => digit * power),
  );
}

function tightest(highest: number, steps: number, sizes: readonly number[]): Axis {
  const axes = sizes
    .map((step) => ({ step, max: step * Math.ceil(highest / step - 1e-9) }))
    .filter(({ step, max }) => Math.round(max / step) <= steps);
  return axes.reduce((best, axis) => (axis.max < best.max ? axis : best));
}

/** The tightest ends around the figures that are 1, 2 or 5 times a power of ten: whole powers would leave much of a chart empty. */
export function logAxis(lowest: number, highest: number): { min: number; max: number } {
  if (!(highest > 0) || !Number.isFinite(lowest)) return { min: 1, max: 10 };
  const min = roundFigure(lowest, [5, 2, 1], (figure) => figure <= lowest * (1 + 1e-9));
  const above = (bound: number) =>
    roundFigure(bound, [1, 2, 5, 10], (figure) => figure >= bound * (1 - 1e-9));
  const max = above(highest);
  return { min, max: max > min ? max : above(1.5 * min) };
}

/** The least distance between labels of an axis, in parts of it: text of 11 px takes 15, and the axis of a chart on paper has 70. */
const LEAST_DISTANCE = 0.22;

/** Which end of a logarithmic axis has no label, since it would be too near that of a power of ten within: 500 ns below 1 µs. */
export function endLabels({ min, max }: { min: number; max: number }): {
  showMinLabel?: boolean;
  showMaxLabel?: boolean;
} {
  const [low, high] = [Math.log10(min), Math.log10(max)];
  const isNear = (end: number, within: number) => {
    const distance = Math.abs(within - end) / (high - low);
    return distance > 1e-9 && distance < LEAST_DISTANCE;
  };
  return {
    ...(isNear(low, Math.ceil(low - 1e-9)) ? { showMinLabel: false } : {}),
    ...(isNear(high, Math.floor(high + 1e-9)) ? { showMaxLabel: false } : {}),
  };
}

/** The first of the digits times the power of ten at or below a value that fits. */
function roundFigure(value: number, digits: readonly number[], fits: (figure: number) => boolean): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return digits.map((digit) => digit * power).find(fits) ?? power;
}
