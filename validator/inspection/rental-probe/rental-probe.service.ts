/** When an executor is rented for a probe, how many at once, and what is left of one that was cut off. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Facts } from '../../checks/check.ts';
import { RentalFacts } from '../../checks/measured.ts';
import { isShared } from '../../store/evidence-store.ts';
import type { EvidenceStore, RentalProbeRow } from '../../store/tables.ts';
import { LIFETIME_S } from './probe-spec.ts';
import { beginRentalProbe, endRentalProbe, findRentalProbe } from './rental-probe.store.ts';
import { blockedByPods, isPresent, type ProbeEnd, rentOnce } from './rental-probe.ts';
import type { SshLogin } from './ssh-session.ts';

/** Beyond these the others wait for a later pass. */
const MAX_PARALLEL = 16;
const HOUR_MS = 3_600_000;
/** What did not pass is tried again sooner. */
const AGAIN_MS = 600_000;
/** For an agent to remove a pod whose time is over. */
const REMOVAL_MS = 120_000;

export type RentalProbes = ReturnType<typeof createRentalProbes>;

export type RentalProbesOptions = {
  store: EvidenceStore;
  clock: Clock;
  random: Random;
  log: Log;
  logIn: SshLogin;
};

type Running = { stop: AbortController; ended: Promise<unknown> };

export function createRentalProbes(options: RentalProbesOptions) {
  const { store, clock, random, log } = options;
  const running = new Map<string, Running>();

  /** True when nothing of the last one is on the host, as far as is known. */
  async function cleared(row: RentalProbeRow | undefined, client: AgentClient): Promise<boolean> {
    if (row === undefined || row.ended_ms !== null) return true;
    const isLive = isShared(store) && clock.now() - row.started_ms < LIFETIME_S * 1_000;
    if (isLive || running.has(row.executor_id)) return false;
    const isGone = await client.deletePod(row.pod_id).then(
      (view) => !isPresent(view),
      (error: unknown) => error instanceof ApiError && error.code === 'pod_not_found',
    );
    if (!isGone) return false;
    const { pod_id: podId, result_json: resultJson } = row;
    await endRentalProbe(store, podId, { endedMs: clock.now(), resultJson });
    return true;
  }

  function resultIn(row: RentalProbeRow | undefined): RentalFacts | null {
    if (row === undefined || row.result_json === null) return null;
    return RentalFacts.parse(JSON.parse(row.result_json));
  }

  function isFresh({ status, at_ms: atMs }: RentalFacts, facts: Facts, isAsked: boolean): boolean {
    const ageMs = clock.now() - atMs;
    const { rental_probe_hours: hours } = facts.policy.checks;
    const keptMs = status === 'passed' ? hours * HOUR_MS : isAsked ? 0 : AGAIN_MS;
    return ageMs >= 0 && ageMs < keptMs;
  }

  async function probe(
    { executor, policy, inventory }: Facts & { inventory: object },
    client: AgentClient,
  ): Promise<RentalFacts | null> {
    const podId = random.uuid();
    const begun = { executor_id: executor.id, pod_id: podId, started_ms: clock.now() };
    if (!(await beginRentalProbe(store, begun))) return null;
    const stop = new AbortController();
    const startedMs = clock.monotonicMs();
    const image = policy.checks.rental_probe_image;
    const host = executor.executor_ip_address;
    const renting = rentOnce(
      { client, clock, random, logIn: options.logIn },
      { podId, host, inventory, image, signal: stop.signal },
    );
    running.set(executor.id, { stop, ended: renting });
    try {
      const end = await renting;
      const result = resultOf(end, { ms: clock.monotonicMs() - startedMs, atMs: clock.now() });
      log.info({ executor: executor.id, ...end, ms: result.ms }, 'rental probe');
      // Where the removal was not seen to its end, the row stays open: the next look sees to it.
      const isOver = await client.getPod(podId).then(
        (view) => !isPresent(view),
        (error: unknown) => error instanceof ApiError && error.code === 'pod_not_found',
      );
      await endRentalProbe(store, podId, {
        endedMs: isOver ? clock.now() : null,
        resultJson: JSON.stringify(result),
      });
      return result;
    } finally {
      running.delete(executor.id);
    }
  }

  /** Pods of ours that may have been on the host at `atMs`; one that its agent keeps beyond its time is none. */
  async function podsAt(executorId: string, atMs: number): Promise<string[]> {
    const row = await findRentalProbe(store, executorId);
    if (row === undefined) return [];
    const { pod_id: podId, started_ms: startedMs, ended_ms: endedMs } = row;
    const isOver = endedMs !== null && endedMs < atMs;
    const isDue = atMs - startedMs > LIFETIME_S * 1_000 + REMOVAL_MS;
    return isOver || isDue ? [] : [podId];
  }

  return {
    /** Takes away what was left of one that was cut off; false while its agent has it still, within the pod's time. */
    async clear(executorId: string, client: AgentClient): Promise<boolean> {
      if (await cleared(await findRentalProbe(store, executorId), client)) return true;
      const ours = await podsAt(executorId, clock.now());
      const pods = ours.length === 0 ? [] : await client.listPods().catch(() => []);
      return !pods.some((pod) => isPresent(pod) && ours.includes(pod.id));
    },

    podsAt,

    /**
     * What the last one came to while that counts, else one now if there is room. Null for hosts that are away,
     * rented; not run on those that have a pod, whoever's it is. `isAsked`: somebody waits for what did not pass.
     */
    async look(facts: Facts, client: AgentClient, isAsked: boolean): Promise<RentalFacts | null> {
      const { executor, inventory } = facts;
      if (inventory === null) return null;
      const row = await findRentalProbe(store, executor.id);
      const isClear = await cleared(row, client);
      if (executor.rented) return null;
      const last = resultIn(row);
      if (last !== null && (!isClear || isFresh(last, facts, isAsked))) {
        return { ...last, repeated: true };
      }
      if (!isClear || running.size >= MAX_PARALLEL || running.has(executor.id)) return last;
      const pods = await client.listPods().catch(() => null);
      if (pods === null) return null;
      const present = pods.filter(isPresent);
      const result =
        present.length === 0
          ? await probe({ ...facts, inventory }, client)
          : resultOf(blockedByPods(present), { ms: 0, atMs: clock.now() });
      // Who asks often sees the same thing often: only the regular checks are in a row.
      return result?.status === 'not_run' ? { ...result, repeated: isAsked } : result;
    },

    /** Somebody rents it now: what is under way ends, and resolves when nothing of it is left. */
    async yieldTo(executorId: string): Promise<void> {
      const probing = running.get(executorId);
      probing?.stop.abort();
      await probing?.ended;
    },
  };
}

function resultOf(end: ProbeEnd, { ms, atMs }: { ms: number; atMs: number }): RentalFacts {
  return {
    status: end.status,
    step: end.status === 'failed' ? end.step : null,
    detail: end.status === 'passed' ? '' : end.detail,
    memory: end.status === 'passed' ? end.memory : null,
    ...(end.status === 'not_run'
      ? { pods: end.pods, refused: end.refused }
      : { pods: [], refused: false }),
    ...{ ms: Math.round(ms), at_ms: atMs, repeated: false },
  };
}
