/**
 * Requests the pods of many nodes at once: a signature costs the central API more than everything else of a request.
 */
import { PodList, type PodView } from '#shared/api/agent/pod.ts';
import {
  MAX_LISTED_NODES,
  POD_LISTINGS_PATH,
  PodListings,
} from '#shared/api/central/pod-listings.ts';
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

type Waiting = { executorId: string; resolve(pods: PodView[] | null): void };

export type PodLister = ReturnType<typeof createPodLister>;

/** `send` sends requests to the gateway itself. */
export function createPodLister({ send, clock }: { send: SignedFetch; clock: Clock }) {
  let gathered: Waiting[] = [];
  /** Nodes whose answer was missing, until they answer fast. A slow node would delay the others of its request. */
  const missing = new Set<string>();
  let unsupportedUntilMs = Number.NEGATIVE_INFINITY;

  async function request(ids: readonly string[]): Promise<ReadonlyMap<string, PodView[]>> {
    const signal = clock.deadline(ANSWER_TIMEOUT_MS);
    const body = JSON.stringify({ executor_ids: ids });
    const response = await send({ method: 'POST', path: POD_LISTINGS_PATH, body, signal });
    if (response.status === NOT_FOUND) unsupportedUntilMs = clock.monotonicMs() + UNSUPPORTED_MS;
    const text = await boundedText(response, MAX_ANSWER_BYTES);
    if (!response.ok) return new Map();
    const { listings } = PodListings.parse(JSON.parse(text));
    return new Map(
      listings.flatMap(({ executor_id: id, answer }) => {
        const parsed = PodList.safeParse(answer);
        return parsed.success ? [[id, parsed.data.pods] as const] : [];
      }),
    );
  }

  async function flush(): Promise<void> {
    const batch = gathered;
    gathered = [];
    // The pods of a single node are requested without the route.
    const ids = batch.length < 2 ? [] : batch.map(({ executorId }) => executorId);
    // The separate request for each node fails with the cause.
    const none = new Map<string, PodView[]>();
    const found = ids.length === 0 ? none : await request(ids).catch(() => none);
    for (const { executorId, resolve } of batch) {
      const pods = found.get(executorId) ?? null;
      if (pods === null && found.size > 0) missing.add(executorId);
      resolve(pods);
    }
  }

  function gather(executorId: string): Promise<PodView[] | null> {
    return new Promise((resolve) => {
      gathered.push({ executorId, resolve });
      if (gathered.length >= MAX_LISTED_NODES) void flush();
      else if (gathered.length === 1) void clock.sleep(GATHER_MS).then(flush);
    });
  }

  async function separately(executorId: string, alone: () => Promise<PodView[]>) {
    const beganMs = clock.monotonicMs();
    const pods = await alone();
    if (clock.monotonicMs() - beganMs <= FAST_MS) missing.delete(executorId);
    return pods;
  }

  /** Returns the pods of a node. Rejects as `alone`, the request for the pods of this node only. */
  return async (executorId: string, alone: () => Promise<PodView[]>): Promise<PodView[]> => {
    if (clock.monotonicMs() < unsupportedUntilMs) return alone();
    if (missing.has(executorId)) return separately(executorId, alone);
    return (await gather(executorId)) ?? alone();
  };
}
