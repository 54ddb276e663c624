/** Connections from a pod on the real engine while pods are created and removed. Needs root. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import { createRealHost, type RealHost } from '../../../test/fakes/agents/real-host.ts';
import { createNeighbour, type Neighbour } from '../../../test/fakes/neighbour-network.ts';

const HTTP = 8000;
/** Numbers of pods that come and go during the test, and of concurrent connections. */
const CHURN = 4;
const PROBES = 4;

let neighbour: Neighbour;
let host: RealHost;
let pod: PodView;

beforeAll(async () => {
  neighbour = await createNeighbour([HTTP]);
  host = await createRealHost([neighbour.addresses.private]);
  pod = await host.launch();
});

afterAll(async () => {
  await host?.close();
  await neighbour?.close();
});

it('blocks connections also while the engine creates and removes networks', async () => {
  const url = `http://${neighbour.addresses.private}:${HTTP}/hostname`;
  expect((await fetch(url)).ok).toBe(true);
  let isOver = false;
  const churn = Array.from({ length: CHURN }, () =>
    host.launch().then(({ id }) => host.remove(id)),
  );
  const end = Promise.all(churn).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const reached = await Promise.all(Array.from({ length: PROBES }, () => host.reaches(pod, url)));
    expect(reached).not.toContain(true);
  }
  await end;
});
