/** A validator's gateway that answers at once, for many nodes that run one pod each. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PodSpec } from '#shared/api/agent/pod.ts';
import { POD_LISTINGS_PATH, PodListingsRequest } from '#shared/api/central/pod-listings.ts';
import {
  SAMPLE_HISTORIES_PATH,
  SampleHistoriesRequest,
} from '#shared/api/central/sample-histories.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createFakeAgents } from '../fakes/agents/fake-agents.ts';

const PODS = /^\/v1\/executors\/([0-9a-f-]{36})\/v1\/pods(?:\/([0-9a-f-]{36}))?$/;
/** History of nodes without samples: the part `history` of the bench measures the cost of samples. */
const NO_SAMPLES = {
  epoch: '00000000-0000-4000-8000-0000000000ee',
  newest: null,
  more: false,
  series: [],
};
const OK = { 'content-type': 'application/json' };

export type BusyGateway = Awaited<ReturnType<typeof startBusyGateway>>;

/**
 * Listens on a free loopback port. Signatures are not checked, as the cost of the gateway is not measured. `podOf`
 * returns the id of the copy of the first launched pod that a node runs; null if it runs no copy.
 */
export async function startBusyGateway(podOf: (executorId: string) => string | null) {
  const agents = createFakeAgents();
  agents.useClock(systemClock);
  /** Listing of the node that received the first pod. */
  let first: { text: string; executorId: string; podId: string } | null = null;

  async function answerTo(request: IncomingMessage): Promise<string | null> {
    if (request.url === POD_LISTINGS_PATH) {
      const { executor_ids: ids } = PodListingsRequest.parse(await jsonIn(request));
      const listed = ids.map(async (id) => `{"executor_id":"${id}","answer":${await listing(id)}}`);
      return `{"listings":[${(await Promise.all(listed)).join()}]}`;
    }
    if (request.url === SAMPLE_HISTORIES_PATH) {
      const { queries } = SampleHistoriesRequest.parse(await jsonIn(request));
      const histories = queries.map(({ executor_id }) => ({ executor_id, answer: NO_SAMPLES }));
      return JSON.stringify({ histories });
    }
    const [, executorId, podId] = PODS.exec(request.url ?? '') ?? [];
    if (executorId === undefined) return null;
    if (request.method === 'PUT' && podId !== undefined) {
      const client = agents.clientOf(executorId);
      const view = await client.putPod(podId, PodSpec.parse(await jsonIn(request)));
      first ??= { text: JSON.stringify({ pods: [view] }), executorId, podId };
      return JSON.stringify(view);
    }
    if (request.method !== 'GET' || podId !== undefined) return null;
    return listing(executorId);
  }

  async function listing(executorId: string): Promise<string> {
    const copy = podOf(executorId);
    if (copy === null)
      return JSON.stringify({ pods: await agents.clientOf(executorId).listPods() });
    if (first === null) throw new Error('no pod was launched before the copies');
    return first.text.replaceAll(first.podId, copy).replaceAll(first.executorId, executorId);
  }

  const server = createServer((request, response) => {
    answerTo(request).then(
      (body) => response.writeHead(body === null ? 404 : 200, OK).end(body ?? '{}'),
      () => response.writeHead(500, OK).end('{}'),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async close(): Promise<void> {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function jsonIn(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString('utf8'));
}
