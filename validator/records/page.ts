/** Makes a page of rows that were read with one row more than the page has. Pure. */

/** `next` is the cursor of the last row if there are further rows; null on the last page. */
export function pageOf<Row, Cursor>(
  rows: readonly Row[],
  limit: number,
  cursorOf: (row: Row) => Cursor,
): { items: readonly Row[]; next: Cursor | null } {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next: rows.length > limit && last !== undefined ? cursorOf(last) : null };
}
