/**
 * GPU leases: by UUID, all or nothing, owned by a pod. A lease whose GPU still has compute processes after its
 * pod ended is `dirty`: no pod holds it and no pod can lease it.
 */
import type { GpuDevice } from '#shared/api/agent/inventory.ts';
import type { ReasonCode } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import type { Lease, LeaseStore } from '../leases/lease.store.ts';
import type { GpuCordons, GpuIdentity } from './cordons.ts';
import type { GpuDriver } from './gpu-driver.ts';

/** Port to the GPUs for leasing. */
export type GpuSource = {
  /** Lists the present GPUs and MIG devices. Rejects if they cannot be read. */
  listGpus(): Promise<readonly GpuIdentity[]>;
  /** Returns true if no compute process is left on the device. */
  isFree(uuid: string): Promise<boolean>;
  /** Kind of the host's GPUs; simulated ones are never requested from the container engine. */
  gpuMode(): 'nvidia' | 'simulated' | 'none';
};

export type GpuLeases = ReturnType<typeof createGpuLeases>;

/** Consecutive polls without a process before a GPU counts as free: a process may be between allocations. */
export const CLEAN_POLLS = 2;
export const GPU_LEASE_INTERVAL_MS = 5_000;
/** Pause between polls when a pod releases a GPU. */
const POLL_GAP_MS = 500;

export type GpuLeasePorts = {
  leases: LeaseStore;
  gpus: GpuSource;
  cordons: GpuCordons;
  /** The provider's rule on the number of GPUs per pod. */
  share: GpuShare;
  clock: Clock;
};

export function createGpuLeases({ leases, gpus, cordons, share, clock }: GpuLeasePorts) {
  const held = (podId: string) => leases.heldBy('gpu', podId);
  /** Consecutive polls that found a dirty GPU free. Not persisted: a restart polls again. */
  const cleanPolls = new Map<string, number>();

  /** A failed query counts as not free. */
  const isFree = (uuid: string) => gpus.isFree(uuid).catch(() => false);

  async function isClean(uuid: string): Promise<boolean> {
    for (let poll = 1; poll <= CLEAN_POLLS; poll += 1) {
      if (!(await isFree(uuid))) return false;
      if (gpus.gpuMode() !== 'nvidia') return true;
      if (poll < CLEAN_POLLS) await clock.sleep(POLL_GAP_MS);
    }
    return true;
  }

  /** Releases the lease or marks it dirty, unless the pod has requested the GPU again in the meantime. */
  async function releaseOne(lease: Lease, isWanted: () => boolean): Promise<void> {
    const clean = await isClean(lease.key);
    if (isWanted()) return;
    if (clean) leases.remove(lease);
    else leases.setState(lease, 'dirty', 0);
  }

  async function recheck(lease: Lease): Promise<void> {
    const polls = (await isFree(lease.key)) ? (cleanPolls.get(lease.key) ?? 0) + 1 : 0;
    cleanPolls.set(lease.key, polls);
    if (polls < CLEAN_POLLS) return;
    cleanPolls.delete(lease.key);
    leases.remove(lease);
  }

  return {
    /**
     * Throws gpu_unavailable if a GPU is missing or cordoned, and the errors of the provider's rule. GPUs that
     * the pod already holds are admissible. Call it before the transaction.
     */
    async checkAdmissible(podId: string, uuids: readonly string[]): Promise<void> {
      if (uuids.length === 0 && share.isOpen) return;
      const present = await presentGpus(gpus);
      const missing = uuids.filter((uuid) => !present.some((gpu) => gpu.uuid === uuid));
      if (missing.length > 0) throw unavailable(`This host has no GPU ${missing.join(', ')}`);
      const own = new Set(held(podId).map((lease) => lease.key));
      const clean = present.filter(({ uuid }) => leases.get('gpu', uuid)?.state !== 'dirty');
      const offered = clean.filter((gpu) => own.has(gpu.uuid) || cordons.of(gpu) === null);
      for (const gpu of present) {
        const cordon = cordons.of(gpu);
        if (!uuids.includes(gpu.uuid) || own.has(gpu.uuid) || cordon === null) continue;
        const message = `GpuUnhealthy: GPU ${gpu.uuid} takes no new pods (${cordon.message})`;
        throw unavailable(message, 'GpuUnhealthy');
      }
      share.check(uuids.length, offered.length);
    },
    /** Leases the GPUs that the pod does not hold yet. Throws gpu_unavailable. Call it inside a transaction. */
    lease(podId: string, uuids: readonly string[]): void {
      for (const uuid of uuids) {
        const lease = leases.get('gpu', uuid);
        if (lease?.pod_id === podId && lease.state === 'held') continue;
        if (lease?.state === 'dirty') {
          const message = `GpuDirty: a process of an earlier pod is still on GPU ${uuid}`;
          throw unavailable(message, 'GpuDirty');
        }
        if (lease !== null) throw unavailable(`GPU ${uuid} is in use`);
        leases.take({ kind: 'gpu', key: uuid, podId, slot: '' });
      }
    },
    uuidsOf: (podId: string) => held(podId).map((lease) => lease.key),
    leasedUuids: () =>
      leases.list('gpu').flatMap((lease) => (lease.state === 'held' ? [lease.key] : [])),
    /** Returns the pod that holds the GPU; null if it is free or dirty. */
    holderOf(uuid: string): string | null {
      const lease = leases.get('gpu', uuid);
      return lease?.state === 'held' ? lease.pod_id : null;
    },
    stateOf(uuid: string): GpuDevice['lease_state'] {
      const state = leases.get('gpu', uuid)?.state;
      return state === 'held' || state === 'dirty' ? state : 'free';
    },
    /** Releases the pod's GPUs for which `isWanted` returns false. Call it only while no container of the pod runs. */
    async release(podId: string, isWanted: (uuid: string) => boolean): Promise<void> {
      const released = held(podId).filter((lease) => !isWanted(lease.key));
      await Promise.all(released.map((lease) => releaseOne(lease, () => isWanted(lease.key))));
    },
    /** Removes dirty leases after a reboot, which ended every process. */
    dropDirty(): void {
      for (const lease of dirtyOf(leases)) leases.remove(lease);
    },
    /** Polls each dirty GPU once and frees those clean for CLEAN_POLLS polls. Returns the UUIDs still dirty. */
    async recheckDirty(): Promise<string[]> {
      for (const lease of dirtyOf(leases)) await recheck(lease);
      return dirtyOf(leases).map((lease) => lease.key);
    },
  };
}

function dirtyOf(leases: LeaseStore): Lease[] {
  return leases.list('gpu').filter((lease) => lease.state === 'dirty');
}

async function presentGpus(gpus: GpuSource): Promise<readonly GpuIdentity[]> {
  try {
    return await gpus.listGpus();
  } catch (cause) {
    throw new ApiError('gpu_unavailable', `The GPUs cannot be read (${messageOf(cause)})`, {
      cause,
    });
  }
}

function unavailable(message: string, reason: ReasonCode = 'GpuUnavailable'): ApiError {
  return new ApiError('gpu_unavailable', message, { details: { reason } });
}

export const GPU_SPLITS = ['any', 'whole'] as const;

export type GpuShareRule = {
  /** `whole`: one pod gets all GPUs of the host that are available. */
  split: (typeof GPU_SPLITS)[number];
  /** Minimum of GPUs per pod; 0 also admits pods without GPUs. */
  minimum: number;
};

export type GpuShare = ReturnType<typeof createGpuShare>;

/** Checks the provider's rule on the number of GPUs per pod; it applies to every signer. */
export function createGpuShare({ split, minimum }: GpuShareRule) {
  return {
    /** True if every number is allowed. */
    isOpen: split === 'any' && minimum === 0,
    /** `offered`: number of GPUs available to the pod. Throws gpu_split_not_allowed or gpu_count_invalid. */
    check(count: number, offered: number): void {
      if (split === 'whole' && count !== offered) {
        const message = `This host is rented only as a whole: it has ${offered} GPUs, the request names ${count}`;
        throw new ApiError('gpu_split_not_allowed', message);
      }
      if (count < minimum) {
        const message = `This host rents at least ${minimum} GPUs, the request names ${count}`;
        throw new ApiError('gpu_count_invalid', message);
      }
    },
  };
}

export function createGpuSource(driver: GpuDriver): GpuSource {
  return {
    gpuMode: () => driver.kind,
    async listGpus() {
      const { devices, error } = await driver.read();
      if (devices.length === 0 && error !== null) throw new Error(error);
      return devices;
    },
    isFree: (uuid) => driver.isFree(uuid),
  };
}
