/** Nodes that earlier runs of `npm start` offered and no agent of this one serves: they are withdrawn. */
import { existsSync } from 'node:fs';
import type { Log } from '#shared/runtime/log.ts';
import type { DemoProvider } from './demo-provider.ts';
import type { Home } from './home.ts';

export type LeftNodesDeps = {
  provider: Pick<DemoProvider, 'listNodes' | 'removeNode'>;
  home: Pick<Home, 'agent'>;
  log: Log;
};

/** Of the demo provider's other nodes, only those with an agent's folder in this home are ours: the rest a person has added. */
export async function withdrawLeftNodes(
  { provider, home, log }: LeftNodesDeps,
  served: ReadonlySet<string>,
): Promise<void> {
  for (const { id } of await provider.listNodes()) {
    if (served.has(id) || !existsSync(home.agent(id))) continue;
    // A node with live pods stays: its pods are still somebody's.
    await provider.removeNode(id).then(
      () => log.info({ executor: id }, 'node of an earlier run withdrawn'),
      (error: unknown) => log.warn({ executor: id, err: error }, 'old node kept'),
    );
  }
}
