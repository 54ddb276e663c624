/** Suggests the closest known name for an unknown one. Pure. */

/** Letters for each difference: by default a name is suggested only if at most one in this many letters differs. */
const LETTERS_PER_EDIT = 3;

/** Returns the known name with the fewest letters to change, add, remove or swap. Null if none has at most `mostEdits`. */
export function nearestName(
  name: string,
  known: readonly string[],
  mostEdits = Math.floor(name.length / LETTERS_PER_EDIT),
): string | null {
  let nearest: string | null = null;
  let least = mostEdits + 1;
  for (const candidate of known) {
    const distance = distanceOf(name, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest;
}

/** Optimal string alignment distance: a swap of two adjacent letters counts once. */
function distanceOf(left: string, right: string): number {
  let before: number[] = [];
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= right.length; j += 1) {
      const changed = left[i - 1] === right[j - 1] ? 0 : 1;
      const swaps = left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1];
      next[j] = Math.min(
        at(row, j) + 1,
        at(next, j - 1) + 1,
        at(row, j - 1) + changed,
        swaps ? at(before, j - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, row] = [row, next];
  }
  return at(row, right.length);
}

const at = (row: readonly number[], index: number): number =>
  row[index] ?? Number.POSITIVE_INFINITY;
