/**
 * A central API as a process, and hosts that record what they see of each rental until its first command: the launch, all
 * other requests, and the login. Hosts start no containers.
 */
import { join } from 'node:path';
import type { PodSpecInput } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { sshFingerprint } from '#shared/signing/openssh-key.ts';
import { type SeenLogin, startSshRecorder } from '../agents/ssh-recorder.ts';
import type { TestAccount } from './central-fixture.ts';
import { startCentralProcess } from './central-process.ts';
import { createServedMarket } from './served-market.ts';

/** Times in milliseconds since the launch request. */
export type ObservedRental = {
  executorId: string;
  /** Body of the launch request, as received. */
  spec: PodSpecInput;
  specBytes: number;
  /** Other requests about the pod, such as those for the log. */
  requests: { method: string; path: string; afterMs: number }[];
  launchedMs: number;
  login: SeenLogin;
};

export type ObservedMarket = Awaited<ReturnType<typeof createObservedMarket>>;

const GPUS = 4;
/** Time in which a pod starts. */
const START_MS = 300;
const POD = /^\/v1\/pods\/([^/]+)(.*)$/;

/** Creates the market with `count` nodes. The caller must call `close()`. */
export async function createObservedMarket(count: number) {
  const recorder = await startSshRecorder();
  const rentals = new Map<string, Omit<ObservedRental, 'login'>>();
  const waiting = new Map<string, (rental: ObservedRental) => void>();

  const market = await createServedMarket(
    (folder) => join(folder, 'central.sqlite'),
    async ({ verifiedNode }) => {
      const nodes: string[] = [];
      for (let at = 0; at < count; at += 1) {
        nodes.push((await verifiedNode({ gpus: GPUS, minimum: 1 })).id);
      }
      return nodes;
    },
    ({ method, path, executorId, bytes, body }) => {
      const [, podId = '', rest = ''] = POD.exec(path) ?? [];
      const rental = rentals.get(podId);
      const nowMs = systemClock.monotonicMs();
      if (method === 'PUT' && rest === '' && rental === undefined) {
        launch(podId, { executorId, spec: body as PodSpecInput, specBytes: bytes });
      } else if (rental !== undefined) {
        rental.requests.push({ method, path: rest, afterMs: nowMs - rental.launchedMs });
      }
    },
  );
  const { gateway } = market;
  for (const id of market.nodes) gateway.agents.host(id).arrives = 'starting';
  gateway.beforePutAnswer = async (podId) => {
    void systemClock.sleep(START_MS).then(() => start(podId));
  };

  function launch(
    podId: string,
    seen: Pick<ObservedRental, 'executorId' | 'spec' | 'specBytes'>,
  ): void {
    const rental = { ...seen, requests: [], launchedMs: systemClock.monotonicMs() };
    rentals.set(podId, rental);
    const [key = ''] = seen.spec.ssh_public_keys ?? [];
    recorder.expect(key, (login) => waiting.get(seen.executorId)?.({ ...rental, login }));
  }

  function start(podId: string): void {
    const rental = rentals.get(podId);
    const host = rental && gateway.agents.host(rental.executorId);
    const view = host?.pods.get(podId);
    if (view === undefined) return;
    const { port, hostKey } = recorder;
    const ssh = { port, host_key: hostKey, host_key_fingerprint: sshFingerprint(hostKey) };
    const ports = { ...view.ports, 22: port };
    host?.change(podId, { phase: 'running', ports, ssh: { ...ssh, ready: true } });
  }

  const central = await startCentralProcess(market.environment);
  const account: TestAccount = market.account;
  return {
    account,
    nodes: market.nodes,
    /** Base of the renters' routes. */
    api: `${central.origin}/api`,
    call: central.call,
    /** Resolves with the next rental of the node at its first command. */
    nextRental: (executorId: string) =>
      new Promise<ObservedRental>((resolve) => waiting.set(executorId, resolve)),
    async close(): Promise<void> {
      await central.end();
      await market.close();
      await recorder.close();
    },
  };
}
