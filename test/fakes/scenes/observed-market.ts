/**
 * A central API as a process, and hosts that record what they see of each rental until its first command: the launch, all
 * other requests, and the login. Hosts start no containers.
 */
import { join } from 'node:path';
import type { PodSpecInput } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { sshFingerprint } from '#shared/signing/openssh-key.ts';
import { type SeenLogin, startSshRecorder } from '../agents/ssh-recorder.ts';
import { eventually } from '../eventually.ts';
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

const GPUS = 8;
/** Time in which a pod starts. */
const START_MS = 300;
const FREE_POLL_MS = 400;
/** A busy computer may need minutes. */
const OBSERVED_WITHIN_MS = 300_000;
const POD = /^\/v1\/pods\/([^/]+)(.*)$/;

/** Creates the market with `count` nodes. The caller must call `close()`. */
export async function createObservedMarket(count: number) {
  const recorder = await startSshRecorder();
  const closing = new AbortController();
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
    const launchedMs = systemClock.monotonicMs();
    const rental: Omit<ObservedRental, 'login'> = { ...seen, requests: [], launchedMs };
    rentals.set(podId, rental);
    const [key = ''] = seen.spec.ssh_public_keys ?? [];
    recorder.expect(key, (login) => {
      const requests = [...rental.requests];
      waiting.get(seen.executorId)?.({ ...rental, requests, login });
    });
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
  const { body: listed } = await central.call('GET', '/templates');
  const templates = listed as unknown as { id: string; user_id: string | null }[];
  return {
    account,
    /** Ids of the official templates, in the market's order. */
    templates: templates.flatMap(({ id, user_id: owner }) => (owner === null ? [id] : [])),
    nodes: market.nodes,
    /** Base of the renters' routes. */
    api: `${central.origin}/api`,
    call: central.call,
    /** Replaces the keys of the account. */
    async useKey(publicKey: string): Promise<void> {
      await market.db.deleteFrom('ssh_keys').execute();
      const body = { name: 'own', public_key: publicKey };
      await central.call('POST', '/ssh-keys', { headers: account.key, body });
    },
    /** Ends all pods of the node. */
    async endAll(executorId: string): Promise<void> {
      const pods = [...rentals].filter(([, rental]) => rental.executorId === executorId);
      for (const [id] of pods) {
        await central.call('DELETE', `/pods/${id}`, { headers: account.key });
      }
    },
    /** Resolves when the whole node can be rented again. */
    async untilFree(executorId: string): Promise<void> {
      await eventually(
        'a free node',
        async () => {
          await systemClock.sleep(FREE_POLL_MS);
          const { body } = await central.call('GET', '/executors');
          const nodes = body as unknown as { id: string; available_gpu_count: number }[];
          return nodes.some((node) => node.id === executorId && node.available_gpu_count === GPUS);
        },
        OBSERVED_WITHIN_MS,
      );
    },
    /** Resolves with the next rental of the node at its first command. Rejects after five minutes. */
    nextRental: (executorId: string) =>
      new Promise<ObservedRental>((resolve, reject) => {
        waiting.set(executorId, resolve);
        void systemClock.sleep(OBSERVED_WITHIN_MS, closing.signal).then(
          () => reject(new Error('no first command')),
          () => undefined,
        );
      }),
    async close(): Promise<void> {
      closing.abort();
      await central.end();
      await market.close();
      await recorder.close();
    },
  };
}
