/** Where facts were read. */

/** Fewer facts, or a shorter path, are better named in full. */
const LEAST_FACTS = 3;
const LEAST_LENGTH = 20;

/** The deepest folder that all of at least three paths are in, with its last slash; null where there is none, or a short one. */
export function commonFolder(paths: readonly string[]): string | null {
  const [first, ...others] = paths;
  if (first === undefined || paths.length < LEAST_FACTS) return null;
  const parts = first.split("/").slice(0, -1);
  while (parts.join("/").length >= LEAST_LENGTH) {
    const folder = `${parts.join("/")}/`;
    if (others.every((path) => path.startsWith(folder))) return folder;
    parts.pop();
  }
  return null;
}
