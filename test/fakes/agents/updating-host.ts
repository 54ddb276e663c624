/** A host in memory whose agent updates itself: the agent's part of an update, the switcher, and the store of both. */
import { createLog } from '#shared/runtime/log.ts';
import { openDatabase } from '../../../agent/database/database.ts';
import type { Replacement } from '../../../agent/updates/installation.ts';
import { runSwitcher } from '../../../agent/updates/switcher.ts';
import {
  createUpdateService,
  type UpdatePorts,
  type WaitReason,
} from '../../../agent/updates/update.service.ts';
import type { Target, UpdateRow } from '../../../agent/updates/update.state.ts';
import { createUpdateStore } from '../../../agent/updates/update.store.ts';
import {
  AGENT_IMAGE,
  digestOf,
  NOW_MS,
  signedDigest,
  validatorKey,
} from '../../fixtures/update-manifest.ts';
import { createManualClock } from '../manual-clock.ts';
import { createSeededRandom } from '../seeded-random.ts';

const EXECUTOR_ID = '3f9f41a6-0001-4000-8000-000000000001';
export const INTERVAL_MS = 300_000;
const log = createLog({ name: 'test', level: 'silent' });

export class Killed extends Error {}

/**
 * Creates an agent with these keys and its switcher, which share a store, on a host in memory. `killAt` kills the
 * process just before or just after the write with this number.
 */
export function createUpdatingHost(
  keys: Partial<Pick<UpdatePorts, 'keys' | 'root' | 'trustChanged'>> = {},
) {
  const clock = createManualClock(NOW_MS);
  const store = createUpdateStore(openDatabase(':memory:'));
  const host = {
    /** Digest of the running release; null if none runs. */
    runs: digestOf('a') as string | null,
    staged: null as string | null,
    refusal: null as string | null,
    switchers: 0,
    lost: [] as string[],
    /** Behaviour of the new version. */
    isSound: true,
    isReady: true,
    answer: signedDigest() as unknown,
    isForeign: false,
    maintenance: null as string | null,
    busy: null as string | null,
    probe: null as WaitReason | null,
    hasSpace: true,
    writes: 0,
    killAt: null as { write: number; isBefore: boolean } | null,
    did: [] as string[],
  };
  const watched = {
    get: store.get,
    put(row: UpdateRow) {
      host.writes += 1;
      const kill = host.killAt?.write === host.writes ? host.killAt : null;
      if (kill?.isBefore === true) throw new Killed();
      store.put(row);
      if (kill !== null) throw new Killed();
    },
  };
  const old = digestOf('a');
  const replacement: Replacement = {
    refusal: async () => host.refusal,
    async stopOld() {
      if (host.runs === old) host.runs = null;
    },
    async startNew({ digest }: Target) {
      if (host.staged !== digest) throw new Error('not staged');
      host.runs = digest;
    },
    status: async () => ({ isAlive: host.isSound, host: '127.0.0.1' }),
    lastLogLines: async () => 'its last line',
    async removeNew() {
      host.staged = null;
      if (host.runs !== old) host.runs = null;
      return true;
    },
    async startOld() {
      host.runs = old;
    },
    cleanUp: async () => undefined,
  };
  const boot = () =>
    createUpdateService({
      clock,
      log,
      executorId: EXECUTOR_ID,
      store: watched,
      image: AGENT_IMAGE,
      random: createSeededRandom(1),
      platform: 'linux/amd64',
      keys: [{ hotkey: validatorKey.hotkey, roles: ['validator-control'] }],
      root: null,
      trustChanged: () => undefined,
      ...keys,
      installation: {
        async running() {
          if (host.isForeign) throw new Error('it lacks the label');
          return host.runs === null ? [] : [host.runs];
        },
        hasSpace: async () => host.hasSpace,
        has: () => false,
        async stage({ digest }) {
          host.staged = digest;
        },
        async unstage() {
          host.staged = null;
        },
        rollbackPoint: async () => ({ old_id: 'old', restart_policy: {} }),
        async startSwitcher() {
          host.switchers += 1;
        },
      },
      async fetchImage({ digest }) {
        host.did.push(`fetch ${digest.slice(7, 9)}`);
      },
      async readManifest() {
        if (host.answer instanceof Error) throw host.answer;
        return host.answer;
      },
      intervalMs: INTERVAL_MS,
      maintenanceReason: () => host.maintenance,
      workInProgress: () => host.busy,
      runningPods: () => [{ id: 'pod', container_id: 'container', generation: 1 }],
      tryContainer: async () => host.probe,
    });
  async function switchOver(): Promise<void> {
    const ended = runSwitcher({
      clock,
      log,
      replacement,
      probationMs: 5_000,
      readyWithinMs: 3_000,
      withStore: (work) => work(watched),
      storeCopy: { make: () => undefined, restoreIfNewer: () => undefined, drop: () => undefined },
      isReady: async () => host.isReady,
      lostPods: async (pods) => pods.map(({ id }) => id).filter((id) => host.lost.includes(id)),
    }).then(
      () => null,
      (error: unknown) => error,
    );
    await clock.advance(30_000);
    const error = await ended;
    if (error !== null) throw error;
  }
  return { host, clock, store, boot, switchOver };
}
