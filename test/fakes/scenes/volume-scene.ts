/** A renter with two nodes and a storage for volumes. */
import { createFakeBackupStorage } from '../external/fake-backup-storage.ts';
import type { TestMarketOverrides } from './market-fixture.ts';
import { createPodScene } from './pod-scene.ts';

export type VolumeScene = Awaited<ReturnType<typeof createVolumeScene>>;

/** Creates the scene. The caller must call `close()`. */
export async function createVolumeScene(overrides: TestMarketOverrides = {}) {
  const storage = createFakeBackupStorage();
  const scene = await createPodScene({
    backupStorage: storage,
    pruneBackups: storage.prune,
    ...overrides,
  });
  const { market, account, node } = scene;
  const other = await market.verifiedNode({ gpus: 2, minimum: 1 });
  const volumes = market.below('/volumes', account);

  async function make(name = 'data'): Promise<string> {
    const { status, body } = await volumes('POST', '', { name });
    if (status !== 200) throw new Error(JSON.stringify(body));
    return body.id;
  }

  const rentOn = (nodeId: string, volumeId: string, who = account) =>
    market.rent(who, nodeId, { gpu_count: 1, volume_id: volumeId });

  /** Rents a pod with the volume and runs the jobs that send it to the node. */
  async function runOn(nodeId: string, volumeId: string): Promise<string> {
    const { status, body } = await rentOn(nodeId, volumeId);
    if (status !== 200) throw new Error(JSON.stringify(body));
    await market.sync();
    return body.id;
  }

  /** Returns the node's copy of a volume; the last copy if there are several. */
  const copyOn = (nodeId: string) =>
    [...market.agents.host(nodeId).volumes.views.values()].at(-1)?.id ?? '';

  /** Returns the latest operation on a node, whether or not it has ended. */
  const operationOn = (nodeId: string) =>
    [...market.agents.host(nodeId).operations.views.values()].at(-1);

  return {
    ...scene,
    other,
    storage,
    volumes,
    make,
    rentOn,
    runOn,
    copyOn,
    operationOn,
    volume: async (id: string) => (await volumes('GET', `/${id}`)).body,
    /**
     * Removes the pod from the node and lets the node complete the save of its volume. The snapshot id repeats `digit`.
     */
    async savedFrom(nodeId: string, podId: string, digit = 'a'): Promise<void> {
      await scene.remove(podId);
      await scene.later();
      await scene.later(2_000);
      market.agents.host(nodeId).operations.finish(operationOn(nodeId)?.id ?? '', digit);
      await scene.later(2_000);
      await scene.later(2_000);
    },
    /** Attaches the volume to a pod on the first node and saves the volume from there. */
    async saved(digit = 'a'): Promise<string> {
      const id = await make();
      const podId = await runOn(node.id, id);
      await this.savedFrom(node.id, podId, digit);
      return id;
    },
    /** Returns subtypes and details of the pod's events about its volume. */
    async volumeEvents(podId: string): Promise<string[]> {
      const events: { sub_event_type: string; detail: string; event: { volume_id?: string } }[] =
        await scene.events(podId);
      return events
        .filter(({ event }) => event.volume_id !== undefined)
        .map(({ sub_event_type, detail }) => `${sub_event_type} ${detail}`);
    },
  };
}
