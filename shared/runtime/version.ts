/** The product's version, reported by every process. Kept equal to package.json by a test. */
export const VERSION = '0.1.0';

/** How versions are ordered. Pure. */

/** Below, at or above 0 as the versions are ordered, by their numbers; null where one has none. */
export function compareVersions(one: string, other: string): number | null {
  const [left, right] = [numbersOf(one), numbersOf(other)];
  if (left === null || right === null) return null;
  const length = Math.max(left.length, right.length);
  for (let at = 0; at < length; at += 1) {
    const difference = (left[at] ?? 0) - (right[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function numbersOf(version: string): number[] | null {
  const digits = /^\d{1,9}(?:\.\d{1,9})*/.exec(version)?.[0];
  return digits === undefined ? null : digits.split('.').map(Number);
}
