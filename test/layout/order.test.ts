/** Tests that a cycle of folders is found and reported with its imports. */
import { expect, it } from 'vitest';
import { readSource } from './imports.ts';
import { ringIn } from './order.ts';

/** Files by path, each with its imports. */
function tree(files: Record<string, readonly string[]>) {
  return Object.entries(files).map(([path, imports]) =>
    readSource(path, imports.map((specifier) => `import { a } from '${specifier}';\n`).join('')),
  );
}

it('reports every import of a cycle, and no other', () => {
  const files = tree({
    'agent/app.ts': ['./pods/pod.ts', './ssh/ssh.ts'],
    'agent/pods/pod.ts': ['../ports/port.ts', '../ssh/ssh.ts', '../ssh/key.ts', '#shared/a.ts'],
    'agent/ssh/ssh.ts': ['../store/store.ts'],
    'agent/store/store.ts': ['../pods/pod.ts'],
  });
  expect(ringIn('agent/', files).toSorted()).toEqual([
    'agent/pods/pod.ts:2 imports ../ssh/ssh.ts',
    'agent/pods/pod.ts:3 imports ../ssh/key.ts',
    'agent/ssh/ssh.ts:1 imports ../store/store.ts',
    'agent/store/store.ts:1 imports ../pods/pod.ts',
  ]);
});

it('treats a file beside the folders like a folder', () => {
  const files = tree({
    'agent/ports.ts': ['./pods/pod.ts'],
    'agent/pods/pod.ts': ['../ports.ts'],
  });
  expect(ringIn('agent/', files)).toHaveLength(2);
});

it('ignores imports of schemas and states, unless these import their importers', () => {
  const named = {
    'agent/pods/pod.ts': ['../ssh/ssh.ts'],
    'agent/ssh/ssh.ts': ['../pods/pod.state.ts'],
  };
  expect(ringIn('agent/', tree(named))).toEqual([]);
  const calling = { ...named, 'agent/ssh/ssh.state.ts': ['../pods/pod.ts'] };
  expect(ringIn('agent/', tree(calling))).toHaveLength(2);
});

it.each<[of: string, files: Record<string, readonly string[]>]>([
  ['tests', { 'agent/a/a.ts': ['../b/b.ts'], 'agent/b/b.test.ts': ['../a/a.ts'] }],
  ['one folder', { 'agent/a/a.ts': ['./b.ts'], 'agent/a/b.ts': ['./a.ts'] }],
  ['another side', { 'agent/a/a.ts': ['../../shared/b.ts'], 'shared/b.ts': ['../agent/a/a.ts'] }],
])('finds no cycle in files of %s', (_of, files) => {
  expect(ringIn('agent/', tree(files))).toEqual([]);
});
