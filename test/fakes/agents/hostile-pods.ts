/** A host with a neighbour pod that must keep answering while another pod attacks. */
import { expect } from 'vitest';
import type { PodView } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { eventually } from '../eventually.ts';
import { createRealHost, mustRun } from './real-host.ts';

const MIB = 2 ** 20;
export const ATTACK_MS = 3_000;
/** Limits of the attacking pod. */
export const ATTACKER_LIMITS = {
  cpu_cores: 0.5,
  memory_bytes: 48 * MIB,
  shm_bytes: 8 * MIB,
  pids: 48,
};
const PAUSE_MS = 50;
const ANSWER_TIMEOUT_MS = 5_000;

export type AttackedHost = Awaited<ReturnType<typeof createAttackedHost>>;

/** Launches the neighbour. The caller must call `close()`. */
export async function createAttackedHost() {
  const host = await createRealHost();
  const neighbour = await host.launch();
  const neighbourUrl = `http://127.0.0.1:${neighbour.ports['8000']}/`;
  const agentUrl = `http://127.0.0.1:${host.agentPort}/healthz`;
  await eventually('the neighbour', () => answers(neighbourUrl));

  /** Returns the requests to agent and neighbour that got no answer during the attack. */
  async function watch(): Promise<string[]> {
    const unanswered: string[] = [];
    const untilMs = systemClock.monotonicMs() + ATTACK_MS;
    while (systemClock.monotonicMs() < untilMs) {
      for (const url of [agentUrl, neighbourUrl]) {
        if (!(await answers(url))) unanswered.push(url);
      }
      await systemClock.sleep(PAUSE_MS);
    }
    return unanswered;
  }

  return {
    ...host,
    /** Returns the requests to agent and neighbour that got no answer within the next seconds. */
    unanswered: watch,
    /**
     * Runs `script` as a pod, requires answers from host and neighbour, passes the pod to `inspect`, and removes it.
     */
    async attack(script: string, inspect: (pod: PodView) => Promise<void>): Promise<void> {
      const pod = await host.launch(script, {
        limits: ATTACKER_LIMITS,
        internal_ports: [],
        stop_grace_seconds: 1,
      });
      try {
        expect(await watch()).toEqual([]);
        await inspect(pod);
      } finally {
        await host.remove(pod.id);
        await eventually('the removal', async () => (await host.view(pod.id)).phase === 'removed');
      }
      expect(await answers(neighbourUrl)).toBe(true);
    },
    inPod: (pod: PodView, script: string) =>
      mustRun('docker', 'exec', pod.container_id ?? '', 'sh', '-c', script),
  };
}

async function answers(url: string): Promise<boolean> {
  const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
  const answer = await fetch(url, { signal }).catch(() => null);
  await answer?.text();
  return answer?.ok === true;
}
