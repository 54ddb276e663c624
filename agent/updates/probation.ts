/** Conditions that a new version has to meet during its probation: it is ready, and no pod was lost. */

import { VersionInfo } from '#shared/api/agent/inventory.ts';
import { boundedText } from '#shared/http/bounded-text.ts';
import { hostAndPort } from '#shared/http/listen.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Transport } from '#shared/tls/transport.ts';
import { type ContainerEngine, LABELS } from '../containers/engine/engine.ts';
import type { PodRow } from '../pods/pod.store.ts';
import type { PodMark } from './update.state.ts';

const TIMEOUT_MS = 5_000;
const MAX_BYTES = 64 * 1024;

export type AgentReadyOptions = {
  executorId: string;
  scheme: 'http' | 'https';
  port: number;
  /** Opens a transport that accepts only the agent's own key. Called on first use. */
  openTransport(): Transport;
  clock: Clock;
};

/** Returns a probe: true if this executor's agent answers at `host` and is ready. The probe never rejects. */
export function createAgentReady(options: AgentReadyOptions) {
  const { executorId, scheme, port, clock } = options;
  let transport: Transport | null = null;
  return async (host: string): Promise<boolean> => {
    const signal = clock.deadline(TIMEOUT_MS);
    try {
      transport ??= options.openTransport();
      const { fetch } = transport;
      const read = (path: string) =>
        fetch(new URL(`${scheme}://${hostAndPort(host, port)}${path}`), {
          method: 'GET',
          headers: {},
          signal,
        });
      const version = await boundedText(await read('/version'), MAX_BYTES);
      if (VersionInfo.parse(JSON.parse(version)).executor_id !== executorId) return false;
      const readiness = await read('/readyz');
      await readiness.body?.cancel();
      return readiness.status === 200;
    } catch {
      return false;
    }
  };
}

export type LostPodsOptions = {
  executorId: string;
  engine: Pick<ContainerEngine, 'inspectContainer'>;
  /** Returns the pods in the store. Pods that this version cannot read are left out. */
  readPods(): readonly Pick<PodRow, 'id' | 'desired' | 'generation' | 'staged_json'>[];
};

/**
 * Returns a function that lists the lost pods: those that should still run unchanged, but whose container was removed
 * or lacks the agent's labels. Containers that ended, and pods that were removed or changed on request, are not lost.
 */
export function createLostPods({ executorId, engine, readPods }: LostPodsOptions) {
  return async (pods: readonly PodMark[]): Promise<string[]> => {
    if (pods.length === 0) return [];
    const missing: PodMark[] = [];
    for (const pod of pods) {
      const labels = (await engine.inspectContainer(pod.container_id))?.labels ?? {};
      const isOurs = labels[LABELS.executor] === executorId && labels[LABELS.pod] === pod.id;
      if (!isOurs) missing.push(pod);
    }
    if (missing.length === 0) return [];
    // Read after the containers: a request to remove a pod is stored before any part of the pod is removed.
    const wanted = readPods().filter(
      ({ desired, staged_json: staged }) => desired === 'running' && staged === null,
    );
    const isWanted = ({ id, generation }: PodMark) =>
      wanted.some((row) => row.id === id && row.generation === generation);
    return missing.filter(isWanted).map(({ id }) => id);
  };
}
