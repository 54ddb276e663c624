/** What can hold a pod to its share of the disk, found by trying: engines say no only when they are asked. */
import type { DiskQuota } from '#shared/api/agent/inventory.ts';
import type { Random } from '#shared/runtime/random.ts';
import { type ContainerEngine, EngineError, LABELS } from '../containers/engine/engine.ts';

export type DiskQuotaProbe = ReturnType<typeof createDiskQuotaProbe>;

const MIB = 1024 * 1024;
const PROBE_LIMITS = {
  cpuCores: 0.1,
  memoryBytes: 16 * MIB,
  shmBytes: MIB,
  pids: 16,
  diskBytes: 64 * MIB,
};

export function createDiskQuotaProbe(deps: {
  engine: ContainerEngine;
  executorId: string;
  random: Random;
  /** The id of an image that needs no registry. */
  ensureBuiltinImage(): Promise<string>;
}) {
  const { engine } = deps;
  let found: DiskQuota | null = null;

  /** Created and never started: a file system without quotas refuses at once. */
  async function engineTakesLimit(): Promise<boolean> {
    const labels = {
      [LABELS.managed]: '1',
      [LABELS.executor]: deps.executorId,
      [LABELS.kind]: 'probe',
    };
    const image = await deps.ensureBuiltinImage();
    try {
      const id = await engine.createContainer({
        name: `podwright-quota-${deps.random.uuid()}`,
        image,
        labels,
        entrypoint: ['/bin/true'],
        command: [],
        environment: {},
        network: null,
        ports: [],
        gpuUuids: [],
        limits: PROBE_LIMITS,
        stopGraceSeconds: 0,
      });
      await engine.removeContainer(id);
      return true;
    } catch (error) {
      if (error instanceof EngineError && error.kind === 'refused') return false;
      throw error;
    }
  }

  return {
    /** Finds out, once; rejects with EngineError while the engine gives no answer either way. */
    async find(): Promise<DiskQuota> {
      found ??= (await engineTakesLimit()) ? 'kernel' : 'poll';
      return found;
    },
    /** `none` until it is found out. */
    found: (): DiskQuota => found ?? 'none',
  };
}
