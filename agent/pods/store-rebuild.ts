/**
 * Rebuilds a store that is lost, or that lacks pods because it lost its newest changes. Containers show the ports and
 * GPUs that their pods lease; the central API, which does not find its pods in the agent's list, sends their specs
 * again. A pod whose ports were leased anew would get a new container and lose its files.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type DatabaseSync, inTransaction } from '#shared/runtime/sqlite.ts';
import {
  type ContainerEngine,
  type ContainerState,
  EngineError,
  LABELS,
} from '../containers/engine/engine.ts';
import { podLabels } from '../containers/engine/labels.ts';
import { endRebuild, rebuildOf } from '../database/database.ts';
import type { LeaseKind, LeaseStore } from '../leases/lease.store.ts';
import type { PeriodicWork } from '../periodic-work.ts';
import { isAlive } from './plan-facts.ts';
import type { PodRecords } from './pod-records.ts';
import { SSH_PORT } from './pod-row.ts';

export type StoreRebuild = ReturnType<typeof createStoreRebuild>;

/** Pause between two attempts while the engine does not answer. */
const INTERVAL_MS = 5_000;
const GPU_VARIABLE = 'NVIDIA_VISIBLE_DEVICES';

type Lease = { kind: LeaseKind; key: string; podId: string; slot: string };

export function createStoreRebuild(deps: {
  executorId: string;
  engine: Pick<ContainerEngine, 'listContainers' | 'containerLaunch'>;
  records: Pick<PodRecords, 'get'>;
  leases: LeaseStore;
  database: DatabaseSync;
  /** Ports of the SSH gateway by pod id at the start, which no container shows. */
  sshPorts: Record<string, number>;
  clock: Clock;
  log: Log;
}) {
  const { engine, records, leases, database, log } = deps;
  let rebuild = rebuildOf(database);
  /** True once the ports and GPUs of all containers have leases. */
  let isSeeded = false;
  /** True while a container runs whose pod the store lacks. */
  let hasLost = false;
  if (rebuild !== null) log.error({ detail: rebuild.cause }, 'building the store anew');

  const lostContainers = async () =>
    (await engine.listContainers(podLabels(deps.executorId))).filter(
      (container) => records.get(podOf(container)) === null,
    );

  async function leasesOf(container: ContainerState): Promise<Lease[]> {
    const podId = podOf(container);
    const launch = await engine.containerLaunch(container.id);
    const ports = (launch?.ports ?? []).map(({ internal, host }): Lease => {
      return { kind: 'port', key: String(host), podId, slot: String(internal) };
    });
    const ssh = (rebuild?.ssh_ports ?? deps.sshPorts)[podId];
    const isPublished = ports.some(({ slot }) => slot === String(SSH_PORT));
    if (ssh !== undefined && !isPublished) {
      ports.push({ kind: 'port', key: String(ssh), podId, slot: String(SSH_PORT) });
    }
    const gpus = (launch?.environment[GPU_VARIABLE] ?? '')
      .split(',')
      .filter((uuid) => /^(?:GPU|MIG)-/.test(uuid));
    return [...ports, ...gpus.map((key): Lease => ({ kind: 'gpu', key, podId, slot: '' }))];
  }

  /** Leases what the containers of lost pods use. Rejects with EngineError. */
  async function seed(): Promise<void> {
    const lost = await lostContainers();
    // A row is written before its container is created: the store lost its newest changes.
    hasLost = lost.length > 0;
    if (hasLost && rebuild === null) {
      const names = lost.map(({ name }) => name).join(', ');
      log.error({ detail: names }, 'the store lacks the pods of these containers');
    }
    const wanted = (await Promise.all(lost.map(leasesOf))).flat();
    inTransaction(database, () => {
      // Two containers of a pod whose change was in progress share its ports.
      for (const lease of wanted)
        if (leases.get(lease.kind, lease.key) === null) leases.take(lease);
    });
    isSeeded = true;
  }

  async function runOnce(): Promise<void> {
    if (!isSeeded) await seed();
    if (rebuild === null && !hasLost) return;
    hasLost = (await lostContainers()).some(isAlive);
    if (rebuild === null || hasLost) return;
    endRebuild(database);
    rebuild = null;
    log.info('the store knows all running pods again');
  }

  const work: PeriodicWork = { name: 'store rebuild', intervalMs: INTERVAL_MS, run: runOnce };
  return {
    work,
    /** True until the engine has answered and all running containers belong to known pods. */
    isPending: () => !isSeeded || hasLost || rebuild !== null,
    /**
     * Compares the store with the containers, once. Rejects with upstream_unavailable while the engine does not answer: a
     * new pod could get the ports of a lost pod.
     */
    async requireSeeded(): Promise<void> {
      try {
        if (!isSeeded) await seed();
      } catch (cause) {
        if (!(cause instanceof EngineError)) throw cause;
        const message = 'The agent waits for the container engine before it accepts new pods';
        throw new ApiError('upstream_unavailable', message, { cause });
      }
    },
    /** Text for /readyz. Throws while the store is rebuilt. */
    async describe(): Promise<string> {
      if (rebuild === null && hasLost) return 'lacks pods that run: see the orphans';
      if (rebuild === null) return 'knows all running pods';
      throw new Error(
        `${rebuild.cause}; running pods wait until the central API sends their specs`,
      );
    },
  };
}

function podOf({ labels }: ContainerState): string {
  return labels[LABELS.pod] ?? '';
}
