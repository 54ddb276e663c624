/**
 * Combines requests to many nodes of a gateway into one signed request: a signature costs the central API more than
 * everything else of a request.
 */
import { boundedText } from '#shared/http/bounded-text.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { SignedFetch } from '#shared/signing/signed-fetch.ts';

/** Time for which a request waits for others. */
const GATHER_MS = 5;
/** Longer than the gateway waits for the nodes. */
const ANSWER_TIMEOUT_MS = 5_000;
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** Duration of a separate request up to which a node counts as fast; less than the time for which the gateway waits. */
const FAST_MS = 250;
/** Time for which a gateway without the route receives no further requests to it. */
const UNSUPPORTED_MS = 600_000;
const NOT_FOUND = 404;

/** A route of the gateway that accepts the queries of up to `maxNodes` nodes. */
export type GatheredRoute<Query, Answer> = {
  path: string;
  maxNodes: number;
  bodyOf(queries: readonly { executorId: string; query: Query }[]): object;
  /** Returns the valid answers by executor. Throws if the body has another form. */
  answersIn(body: unknown): ReadonlyMap<string, Answer>;
};

type Waiting<Query, Answer> = {
  executorId: string;
  query: Query;
  resolve(answer: Answer | null): void;
};

/** `send` sends requests to the gateway itself. */
export function createGatheredRequests<Query, Answer>(
  route: GatheredRoute<Query, Answer>,
  { send, clock }: { send: SignedFetch; clock: Clock },
) {
  let gathered: Waiting<Query, Answer>[] = [];
  /** Nodes whose answer was missing, until they answer fast. A slow node would delay the others of its request. */
  const missing = new Set<string>();
  let unsupportedUntilMs = Number.NEGATIVE_INFINITY;

  async function request(batch: readonly Waiting<Query, Answer>[]) {
    const signal = clock.deadline(ANSWER_TIMEOUT_MS);
    const body = JSON.stringify(route.bodyOf(batch));
    const response = await send({ method: 'POST', path: route.path, body, signal });
    if (response.status === NOT_FOUND) unsupportedUntilMs = clock.monotonicMs() + UNSUPPORTED_MS;
    const text = await boundedText(response, MAX_ANSWER_BYTES);
    return response.ok ? route.answersIn(JSON.parse(text)) : new Map<string, Answer>();
  }

  async function flush(): Promise<void> {
    const batch = gathered;
    gathered = [];
    // The separate request for each node fails with the cause. A single node is requested without the route.
    const none = new Map<string, Answer>();
    const found = batch.length < 2 ? none : await request(batch).catch(() => none);
    for (const { executorId, resolve } of batch) {
      const answer = found.get(executorId) ?? null;
      if (answer === null && found.size > 0) missing.add(executorId);
      resolve(answer);
    }
  }

  function gather(executorId: string, query: Query): Promise<Answer | null> {
    return new Promise((resolve) => {
      gathered.push({ executorId, query, resolve });
      if (gathered.length >= route.maxNodes) void flush();
      else if (gathered.length === 1) void clock.sleep(GATHER_MS).then(flush);
    });
  }

  async function separately(executorId: string, alone: () => Promise<Answer>): Promise<Answer> {
    const beganMs = clock.monotonicMs();
    const answer = await alone();
    if (clock.monotonicMs() - beganMs <= FAST_MS) missing.delete(executorId);
    return answer;
  }

  /** Returns the answer of a node. Rejects as `alone`, the request to this node only. */
  return async (
    executorId: string,
    query: Query,
    alone: () => Promise<Answer>,
  ): Promise<Answer> => {
    if (clock.monotonicMs() < unsupportedUntilMs) return alone();
    // Answers of a request are found by their node.
    if (gathered.some((waiting) => waiting.executorId === executorId)) return alone();
    if (missing.has(executorId)) return separately(executorId, alone);
    return (await gather(executorId, query)) ?? alone();
  };
}
