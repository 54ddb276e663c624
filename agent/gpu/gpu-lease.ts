/** GPU leases: by UUID, all or nothing, owned by a pod (agent reference 9). */
import { ApiError, messageOf } from '#shared/errors.ts';
import type { Lease, LeaseStore } from '../store/lease.store.ts';

/** What leasing needs to know of the host's GPUs. */
export type GpuSource = {
  /** The GPUs that the host has now. */
  listGpus(): Promise<readonly { uuid: string }[]>;
  /** Whether no compute process is left on it. */
  isFree(uuid: string): Promise<boolean>;
  /** `simulated` ones exist for us only: the engine is never asked for them. */
  gpuMode(): 'nvidia' | 'simulated' | 'none';
};

export type GpuLeases = ReturnType<typeof createGpuLeases>;

/** A lease whose GPU still has processes is `dirty`: held by nobody, and not to be had. */
export function createGpuLeases({ leases, gpus }: { leases: LeaseStore; gpus: GpuSource }) {
  const held = (podId: string) => leases.heldBy('gpu', podId);

  /** The pod may have asked for the GPU again while its processes were looked for: then it stays held. */
  async function settle(lease: Lease, isWanted: () => boolean): Promise<void> {
    // A reader that fails has not seen the GPU free.
    const free = await gpus.isFree(lease.key).catch(() => false);
    if (isWanted()) return;
    if (free) leases.remove(lease);
    else leases.setState(lease, 'dirty', 0);
  }

  return {
    /** Throws gpu_unavailable when the host lacks one of them. To be called before the transaction. */
    async checkPresent(uuids: readonly string[]): Promise<void> {
      if (uuids.length === 0) return;
      const present = await presentUuids(gpus);
      const missing = uuids.filter((uuid) => !present.has(uuid));
      if (missing.length > 0) throw unavailable(`There is no GPU ${missing.join(', ')} here`);
    },
    /** Adds what the pod has not got yet, or throws gpu_unavailable; to be called inside a transaction. */
    lease(podId: string, uuids: readonly string[]): void {
      for (const uuid of uuids) {
        const lease = leases.get('gpu', uuid);
        if (lease?.pod_id === podId && lease.state === 'held') continue;
        if (lease !== null) throw unavailable(`GPU ${uuid} is in use`);
        leases.take({ kind: 'gpu', key: uuid, podId, slot: '' });
      }
    },
    uuidsOf: (podId: string) => held(podId).map((lease) => lease.key),
    /** The pod that holds the GPU, for the inventory; null when free or dirty. */
    holderOf(uuid: string): string | null {
      const lease = leases.get('gpu', uuid);
      return lease?.state === 'held' ? lease.pod_id : null;
    },
    /** Gives up the pod's GPUs that are not wanted; call it only when no container of the pod runs. */
    async release(podId: string, isWanted: (uuid: string) => boolean): Promise<void> {
      for (const lease of held(podId)) {
        if (!isWanted(lease.key)) await settle(lease, () => isWanted(lease.key));
      }
    },
    /** Looks again at the dirty ones; returns the UUIDs that still are. */
    async recheckDirty(): Promise<string[]> {
      for (const lease of dirtyOf(leases)) await settle(lease, () => false);
      return dirtyOf(leases).map((lease) => lease.key);
    },
  };
}

function dirtyOf(leases: LeaseStore): Lease[] {
  return leases.list('gpu').filter((lease) => lease.state === 'dirty');
}

async function presentUuids(gpus: GpuSource): Promise<Set<string>> {
  try {
    return new Set((await gpus.listGpus()).map((gpu) => gpu.uuid));
  } catch (cause) {
    throw new ApiError('gpu_unavailable', `The GPUs cannot be read (${messageOf(cause)})`, {
      cause,
    });
  }
}

function unavailable(message: string): ApiError {
  return new ApiError('gpu_unavailable', message);
}
