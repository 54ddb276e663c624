/** The product's version, which package.json alone states, and the comparison of versions. */
import manifest from '../../package.json' with { type: 'json' };

/** Reported by every process and command. */
export const VERSION: string = manifest.version;

/**
 * Compares dotted version numbers: returns a number below, at or above 0. Null if one of them does not begin with a
 * number.
 */
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
