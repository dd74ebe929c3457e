/** One cursor in time over many charts: by mouse, by touch, and by the arrow keys. */

import { PLOT } from "../charts/panel";
import type { Store } from "../model/focus";

/** Seconds since the load began, or null when there is no cursor. */
export type CursorTime = number | null;

/** Puts a cursor over a chart's element. `end_s` is the end of its axis, `step_s` what an arrow key moves. */
export function addCursor(
  element: HTMLElement,
  cursor: Store<CursorTime>,
  end_s: () => number,
  step_s: number,
): void {
  const line = document.createElement("div");
  line.className = "cursor";
  line.hidden = true;
  element.append(line);
  const plotWidth = () => element.clientWidth - PLOT.left - PLOT.right;

  element.addEventListener("pointermove", (event) => {
    const x = event.clientX - element.getBoundingClientRect().left - PLOT.left;
    cursor.set(x < 0 || x > plotWidth() ? null : (x / plotWidth()) * end_s());
  });
  element.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse") cursor.set(null);
  });
  element.addEventListener("keydown", (event) => {
    const now = cursor.value ?? 0;
    if (event.key === "ArrowRight") cursor.set(Math.min(end_s(), now + step_s));
    else if (event.key === "ArrowLeft") cursor.set(Math.max(0, now - step_s));
    else if (event.key === "Home") cursor.set(0);
    else if (event.key === "End") cursor.set(end_s());
    else if (event.key === "Escape") cursor.set(null);
    else return;
    event.preventDefault();
  });
  cursor.watch((t_s) => {
    line.hidden = t_s === null || t_s > end_s();
    if (t_s === null) return;
    line.dataset["t"] = t_s.toFixed(3);
    line.style.transform = `translateX(${PLOT.left + (t_s / end_s()) * plotWidth()}px)`;
  });
}
