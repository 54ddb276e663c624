/** GPU leases: by UUID, all or nothing, owned by a pod (agent reference 9). */
import type { GpuDevice } from '#shared/api/agent/inventory.ts';
import type { ReasonCode } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import type { Lease, LeaseStore } from '../leases/lease.store.ts';
import type { GpuCordons, GpuIdentity } from './cordons.ts';
import type { GpuDriver } from './gpu-driver.ts';

/** What leasing needs to know of the host's GPUs. */
export type GpuSource = {
  /** The GPUs and MIG devices that the host has now. */
  listGpus(): Promise<readonly GpuIdentity[]>;
  /** Whether no compute process is left on it. */
  isFree(uuid: string): Promise<boolean>;
  /** `simulated` ones exist for us only: the engine is never asked for them. */
  gpuMode(): 'nvidia' | 'simulated' | 'none';
};

export type GpuLeases = ReturnType<typeof createGpuLeases>;

/** A process may be between two allocations when it is looked for: it takes two looks to see none. */
export const CLEAN_POLLS = 2;
export const GPU_LEASE_INTERVAL_MS = 5_000;
/** Between the looks when a pod gives up a GPU. */
const POLL_GAP_MS = 500;

export type GpuLeasePorts = {
  leases: LeaseStore;
  gpus: GpuSource;
  cordons: GpuCordons;
  /** What the provider allows to be rented. */
  share: GpuShare;
  clock: Clock;
};

/** A lease whose GPU still has processes is `dirty`: held by nobody, and not to be had. */
export function createGpuLeases({ leases, gpus, cordons, share, clock }: GpuLeasePorts) {
  const held = (podId: string) => leases.heldBy('gpu', podId);
  /** Looks in a row that found a dirty GPU free. Forgotten by a restart, which then looks again. */
  const cleanPolls = new Map<string, number>();

  /** A reader that fails has not seen the GPU free. */
  const look = (uuid: string) => gpus.isFree(uuid).catch(() => false);

  async function isClean(uuid: string): Promise<boolean> {
    for (let poll = 1; poll <= CLEAN_POLLS; poll += 1) {
      if (!(await look(uuid))) return false;
      if (gpus.gpuMode() !== 'nvidia') return true;
      if (poll < CLEAN_POLLS) await clock.sleep(POLL_GAP_MS);
    }
    return true;
  }

  /** The pod may have asked for the GPU again while its processes were looked for: then it stays held. */
  async function settle(lease: Lease, isWanted: () => boolean): Promise<void> {
    const clean = await isClean(lease.key);
    if (isWanted()) return;
    if (clean) leases.remove(lease);
    else leases.setState(lease, 'dirty', 0);
  }

  async function recheck(lease: Lease): Promise<void> {
    const polls = (await look(lease.key)) ? (cleanPolls.get(lease.key) ?? 0) + 1 : 0;
    cleanPolls.set(lease.key, polls);
    if (polls < CLEAN_POLLS) return;
    cleanPolls.delete(lease.key);
    leases.remove(lease);
  }

  return {
    /**
     * Throws gpu_unavailable when the host lacks one of them or keeps it from new pods, and the refusals of
     * the provider's rule on shares. What the pod holds already it keeps. To be called before the transaction.
     */
    async checkAdmissible(podId: string, uuids: readonly string[]): Promise<void> {
      if (uuids.length === 0 && share.isOpen) return;
      const present = await presentGpus(gpus);
      const missing = uuids.filter((uuid) => !present.some((gpu) => gpu.uuid === uuid));
      if (missing.length > 0) throw unavailable(`There is no GPU ${missing.join(', ')} here`);
      const own = new Set(held(podId).map((lease) => lease.key));
      const rentable = present.filter(({ uuid }) => leases.get('gpu', uuid)?.state !== 'dirty');
      const sound = rentable.filter((gpu) => own.has(gpu.uuid) || cordons.of(gpu) === null);
      for (const gpu of present) {
        const cordon = cordons.of(gpu);
        if (!uuids.includes(gpu.uuid) || own.has(gpu.uuid) || cordon === null) continue;
        const words = `GpuUnhealthy: GPU ${gpu.uuid} takes no new pods (${cordon.message})`;
        throw unavailable(words, 'GpuUnhealthy');
      }
      share.check(uuids.length, sound.length);
    },
    /** Adds what the pod has not got yet, or throws gpu_unavailable; to be called inside a transaction. */
    lease(podId: string, uuids: readonly string[]): void {
      for (const uuid of uuids) {
        const lease = leases.get('gpu', uuid);
        if (lease?.pod_id === podId && lease.state === 'held') continue;
        if (lease?.state === 'dirty') {
          const words = `GpuDirty: a process of an earlier pod is still on GPU ${uuid}`;
          throw unavailable(words, 'GpuDirty');
        }
        if (lease !== null) throw unavailable(`GPU ${uuid} is in use`);
        leases.take({ kind: 'gpu', key: uuid, podId, slot: '' });
      }
    },
    uuidsOf: (podId: string) => held(podId).map((lease) => lease.key),
    /** Every UUID that pods hold. */
    leasedUuids: () =>
      leases.list('gpu').flatMap((lease) => (lease.state === 'held' ? [lease.key] : [])),
    /** The pod that holds the GPU, for the inventory; null when free or dirty. */
    holderOf(uuid: string): string | null {
      const lease = leases.get('gpu', uuid);
      return lease?.state === 'held' ? lease.pod_id : null;
    },
    stateOf(uuid: string): GpuDevice['lease_state'] {
      const state = leases.get('gpu', uuid)?.state;
      return state === 'held' || state === 'dirty' ? state : 'free';
    },
    /** Gives up the pod's GPUs that are not wanted; call it only when no container of the pod runs. */
    async release(podId: string, isWanted: (uuid: string) => boolean): Promise<void> {
      const given = held(podId).filter((lease) => !isWanted(lease.key));
      await Promise.all(given.map((lease) => settle(lease, () => isWanted(lease.key))));
    },
    /** The host has booted: every process that was left on a GPU is gone. */
    dropDirty(): void {
      for (const lease of dirtyOf(leases)) leases.remove(lease);
    },
    /** One look at each dirty GPU: free ones in two looks running are given back. The UUIDs still dirty. */
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

// MERGED agent/gpu/gpu-lease.ts: Which part of its GPUs a host rents out: the provider's rule, whoever signed the request. Pure.
export const GPU_SPLITS = ['any', 'whole'] as const;

export type GpuShareRule = {
  /** `whole`: all GPUs of the host that can be had go to one pod. */
  split: (typeof GPU_SPLITS)[number];
  /** GPUs that a pod has at least; 0 takes pods without any too. */
  minimum: number;
};

export type GpuShare = ReturnType<typeof createGpuShare>;

export function createGpuShare({ split, minimum }: GpuShareRule) {
  return {
    /** Every count will do. */
    isOpen: split === 'any' && minimum === 0,
    /** `offered`: the GPUs that the pod could have. Throws gpu_split_not_allowed or gpu_count_invalid. */
    check(count: number, offered: number): void {
      if (split === 'whole' && count !== offered) {
        const message = `This host is rented whole only: ${offered} GPUs, ${count} were named`;
        throw new ApiError('gpu_split_not_allowed', message);
      }
      if (count < minimum) {
        const message = `This host rents ${minimum} GPUs or more, ${count} were named`;
        throw new ApiError('gpu_count_invalid', message);
      }
    },
  };
}

// MERGED agent/gpu/gpu-lease.ts: What leasing needs of the GPUs, from the driver: which there are, and whether a process is left on one.
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
