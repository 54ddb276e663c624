/**
 * Returns the path of the navigation that contains the page. The longest path counts, so that the pages below
 * `/validator/cycles` do not belong to `/validator` also. Pure.
 */
export function sectionOf(paths: readonly string[], page: string): string | null {
  const containing = paths.filter(
    (path) => path === page || (path !== '/' && page.startsWith(`${path}/`)),
  );
  return containing.toSorted((a, b) => b.length - a.length)[0] ?? null;
}
