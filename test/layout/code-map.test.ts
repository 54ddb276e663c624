/** Tests that exactly the paths of the code map are found. */
import { expect, it } from 'vitest';
import { codeMapPaths } from './code-map.ts';

it('returns the paths and globs of the table in the section “Code map” only', () => {
  const readme = [
    '# Podwright',
    '| `before/a.ts` |',
    '## Code map',
    'See `prose/b.ts`.',
    '| a task | where |',
    '|---|---|',
    '| launch a pod | `agent/pods/pod.service.ts`, `agent/docker/` |',
    '| loops | `**/*.job.ts`, run by `npm start`, `createAgent()`, `GET /v1/pods`, `/v1/pods` |',
    '## Glossary',
    '| `after/c.ts` |',
  ].join('\n');
  expect(codeMapPaths(readme)).toEqual([
    'agent/pods/pod.service.ts',
    'agent/docker/',
    '**/*.job.ts',
  ]);
});

it('reads a code map at the end of the README', () => {
  expect(codeMapPaths('## Code map\n\n| `agent/` |\n')).toEqual(['agent/']);
});

it('returns null if the README has no code map', () => {
  expect(codeMapPaths('# Podwright\n\nCode map\n')).toBeNull();
});
