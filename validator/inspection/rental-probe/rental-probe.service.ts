/** Decides when to run a rental probe of an executor, limits parallel probes and removes pods of interrupted probes. */
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

/** Maximum number of probes in parallel; other executors wait for a later pass. */
const MAX_PARALLEL = 16;
const HOUR_MS = 3_600_000;
/** Pause after a probe that did not pass. */
const AGAIN_MS = 600_000;
/** Time that an agent has to remove a pod after its lifetime. */
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

  /** Removes the pod of an interrupted probe. Returns false if it may still exist. */
  async function removeLeftover(
    row: RentalProbeRow | undefined,
    client: AgentClient,
  ): Promise<boolean> {
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

  async function runRentalProbe(
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
      // If the removal is not confirmed, the row stays open and the next inspection removes the pod.
      const isGone = await client.getPod(podId).then(
        (view) => !isPresent(view),
        (error: unknown) => error instanceof ApiError && error.code === 'pod_not_found',
      );
      await endRentalProbe(store, podId, {
        endedMs: isGone ? clock.now() : null,
        resultJson: JSON.stringify(result),
      });
      return result;
    } finally {
      running.delete(executor.id);
    }
  }

  /** Probe pods that may have been on the host at `atMs`. Excludes a pod that the agent retains beyond its lifetime. */
  async function podsAt(executorId: string, atMs: number): Promise<string[]> {
    const row = await findRentalProbe(store, executorId);
    if (row === undefined) return [];
    const { pod_id: podId, started_ms: startedMs, ended_ms: endedMs } = row;
    const isOver = endedMs !== null && endedMs < atMs;
    const isDue = atMs - startedMs > LIFETIME_S * 1_000 + REMOVAL_MS;
    return isOver || isDue ? [] : [podId];
  }

  return {
    /** Removes the pod of an interrupted probe. Returns false while the pod still exists within its lifetime. */
    async clear(executorId: string, client: AgentClient): Promise<boolean> {
      if (await removeLeftover(await findRentalProbe(store, executorId), client)) return true;
      const ours = await podsAt(executorId, clock.now());
      const pods = ours.length === 0 ? [] : await client.listPods().catch(() => []);
      return !pods.some((pod) => isPresent(pod) && ours.includes(pod.id));
    },

    podsAt,

    /** Result of the last probe; null before the first. */
    last: async (executorId: string) => resultIn(await findRentalProbe(store, executorId)),

    /**
     * Returns the last result while it is fresh; otherwise runs a probe if the limit allows it. Returns null for
     * unreachable and rented hosts, and `not_run` for hosts with a pod. `isAsked`: the check was requested, so a failed
     * probe is repeated at once. Results before `sinceMs` are not fresh.
     */
    async probe(
      facts: Facts,
      client: AgentClient,
      isAsked: boolean,
      sinceMs = 0,
    ): Promise<RentalFacts | null> {
      const { executor, inventory } = facts;
      if (inventory === null) return null;
      const row = await findRentalProbe(store, executor.id);
      const isClear = await removeLeftover(row, client);
      if (executor.rented) return null;
      const last = resultIn(row);
      const isKept = last !== null && last.at_ms >= sinceMs && isFresh(last, facts, isAsked);
      if (last !== null && (!isClear || isKept)) {
        return { ...last, repeated: true };
      }
      if (!isClear || running.size >= MAX_PARALLEL || running.has(executor.id)) return last;
      const pods = await client.listPods().catch(() => null);
      if (pods === null) return null;
      const present = pods.filter(isPresent);
      const result =
        present.length === 0
          ? await runRentalProbe({ ...facts, inventory }, client)
          : resultOf(blockedByPods(present), { ms: 0, atMs: clock.now() });
      // Only regular checks count as consecutive: a requested check may find the same pod again.
      return result?.status === 'not_run' ? { ...result, repeated: isAsked } : result;
    },

    /** Aborts a running probe because a renter needs the host; resolves when the probe's pod is removed. */
    async yieldTo(executorId: string): Promise<void> {
      const probe = running.get(executorId);
      probe?.stop.abort();
      await probe?.ended;
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
    ms: Math.round(ms),
    at_ms: atMs,
    repeated: false,
  };
}
