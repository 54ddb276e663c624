import { mkdirSync } from 'node:fs';
import { afterAll, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { removeHome, temporaryHome } from '../../test/e2e/marketplace-process.ts';
import { withdrawStaleNodes } from './demo-provider.ts';
import { homeAt } from './home.ts';

const home = homeAt(temporaryHome());
afterAll(() => removeHome(home.root));

const log = createLog({ name: 'test', level: 'silent' });
it('withdraws nodes of earlier runs, but no nodes that a person added', async () => {
  for (const id of ['served', 'earlier', 'rented']) mkdirSync(home.agent(id), { recursive: true });
  const removals: string[] = [];
  const provider = {
    listNodes: async () => ['served', 'earlier', 'rented', 'added'].map((id) => ({ id })),
    async removeNode(id: string) {
      removals.push(id);
      if (id === 'rented') throw new Error('the node has pods');
    },
  };
  await withdrawStaleNodes({ provider, home, log }, new Set(['served']));
  expect(removals).toEqual(['earlier', 'rented']);
});
