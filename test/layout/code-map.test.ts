/** Proves that the code map's paths are found, and only they. */
import { expect, it } from 'vitest';
import { codeMapPaths } from './code-map.ts';

it('returns paths and globs of the table in its section only', () => {
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

it('reads a map that ends the README', () => {
  expect(codeMapPaths('## Code map\n\n| `agent/` |\n')).toEqual(['agent/']);
});

it('is null without the section', () => {
  expect(codeMapPaths('# Podwright\n\nCode map\n')).toBeNull();
});
