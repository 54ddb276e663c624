import { expect, it } from 'vitest';
import { firstEntries, pageEntries, resultEntries } from './search-entries.ts';

it('finds pages by a part of their title', () => {
  const pages = [
    { path: '/pods', title: 'Pods' },
    { path: '/money', title: 'Money' },
  ];
  expect(pageEntries(pages, ' POD ').map(({ path }) => path)).toEqual(['/pods']);
  expect(pageEntries(pages, '')).toHaveLength(2);
});

it('leads to the page of each object', () => {
  const results = {
    pods: [],
    volumes: [{ id: 'v', name: 'data' }],
    templates: [{ id: 't', name: 'train', docker_image: 'image' }],
    nodes: [{ id: 'n', huid: 'h', machine_name: 'm', executor_ip_address: '192.0.2.1' }],
  };
  expect(resultEntries(results).map(({ path }) => path)).toEqual([
    '/volumes/v',
    '/templates/t',
    '/market/n',
  ]);
});

it('limits the entries, and has each once', () => {
  const pod = { id: 'a', pod_name: 'first', status: 'RUNNING', executor_id: 'n' } as const;
  const results = { pods: [pod], volumes: [{ id: 'v', name: 'data' }], templates: [], nodes: [] };
  const entries = resultEntries(results);
  expect(entries.map(({ label }) => label)).toEqual(['Pod · first · a', 'Volume · data · v']);
  expect(firstEntries([...entries, ...entries], 10)).toEqual(entries);
  expect(firstEntries(entries, 1)).toHaveLength(1);
});
