/** Reads the paths in the README's code map, so that a test can detect paths that no longer exist. */

/** Returns the paths and globs in backticks in the table under `## Code map`; null without such a section. */
export function codeMapPaths(readme: string): string[] | null {
  const section = /^## Code map$([\s\S]*?)(?=^## |$(?![\s\S]))/m.exec(readme)?.[1];
  if (section === undefined) return null;
  return section
    .split('\n')
    .filter((line) => line.trimStart().startsWith('|'))
    .flatMap((row) => [...row.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ''))
    .filter((word) => /^(?!\/)[\w.@*/{},-]+$/.test(word) && /[./]/.test(word));
}
