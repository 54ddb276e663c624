/** A validator's gateway over HTTP with agents in memory behind it, for central APIs that run as processes. */
import { z } from 'zod';
import { PodSpec } from '#shared/api/agent/pod.ts';
import { dataFrame, sendSse } from '#shared/http/event-stream.ts';
import { createHttpServer } from '#shared/http/server.ts';
import { clientGone } from '#shared/http/upgrade.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createFakeAgents, type FakeAgents } from './fake-agents.ts';

export type FakeGateway = {
  url: string;
  agents: FakeAgents;
  /** Runs after a launch took effect and before it is answered. */
  beforePutAnswer(podId: string): Promise<void>;
  close(): Promise<void>;
};

const Executor = z.object({ executorId: z.uuid() });
const Pod = Executor.extend({ id: z.uuid() });
const LogQuery = z.object({ tail: z.coerce.number(), follow: z.stringbool().default(false) });
const TARGET = /^\/v1\/executors\/([^/]+)(.*)$/;
const BODY_LIMIT_BYTES = 1024 * 1024;

/** Request for an agent, as the central API has sent it. */
export type AgentRequest = {
  method: string;
  /** Path below the executor. */
  path: string;
  executorId: string;
  /** Length of the body, and the body; null without one. */
  bytes: number;
  body: unknown;
};

/** Listens on a free loopback port. Signatures are not checked. `onRequest` runs before a request takes effect. */
export async function startFakeGateway(
  onRequest: (request: AgentRequest) => void = () => undefined,
): Promise<FakeGateway> {
  const agents = createFakeAgents();
  agents.useClock(systemClock);
  const log = createLog({ name: 'gateway', level: 'silent' });
  const server = createHttpServer({
    log,
    clock: systemClock,
    random: systemRandom,
    bodyLimitBytes: BODY_LIMIT_BYTES,
  });
  server.addHook('preValidation', async ({ method, url, headers, body }) => {
    const [, executorId = '', path = ''] = TARGET.exec(url) ?? [];
    const bytes = Number(headers['content-length'] ?? 0);
    onRequest({ method, path, executorId, bytes, body: body ?? null });
  });
  const base = '/v1/executors/:executorId/v1/pods';
  server.get(base, { schema: { params: Executor } }, async ({ params }) => ({
    pods: await agents.clientOf(params.executorId).listPods(),
  }));
  server.get(`${base}/:id`, { schema: { params: Pod } }, ({ params }) =>
    agents.clientOf(params.executorId).getPod(params.id),
  );
  server.put(`${base}/:id`, { schema: { params: Pod, body: PodSpec } }, async (request) => {
    const { executorId, id } = request.params;
    const view = await agents.clientOf(executorId).putPod(id, request.body);
    await gateway.beforePutAnswer(id);
    return view;
  });
  server.delete(`${base}/:id`, { schema: { params: Pod } }, ({ params }) =>
    agents.clientOf(params.executorId).deletePod(params.id),
  );
  const querystring = LogQuery;
  server.get(
    `${base}/:id/logs`,
    { schema: { params: Pod, querystring } },
    async (request, reply) => {
      const { log: source } = agents.host(request.params.executorId);
      const { tail, follow } = request.query;
      const frames = source.open({ tail, follow }, clientGone(request, reply));
      await sendSse(reply, eachAsData(frames));
    },
  );
  const url = await server.listen({ host: '127.0.0.1', port: 0 });
  const gateway: FakeGateway = {
    url,
    agents,
    beforePutAnswer: async () => undefined,
    close: () => server.close(),
  };
  return gateway;
}

async function* eachAsData(frames: AsyncIterable<unknown>): AsyncGenerator<string> {
  for await (const frame of frames) yield dataFrame(frame);
}
