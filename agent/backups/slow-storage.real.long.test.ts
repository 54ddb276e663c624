/** Slow or hanging storage: the agent still reports progress, and a cancellation does not wait for the storage. */
import { randomBytes } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { OperationView } from '#shared/api/agent/operations.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { fingerprintOf } from '../../test/fakes/mixed-tree.ts';
import { type GatedScene, startGatedScene } from '../../test/fakes/scenes/gated-scene.ts';
import { median } from '../../test/measure/row.ts';
import type { OperationService } from './operation.service.ts';

const MIB = 1024 * 1024;
/** The product's limit is two seconds; a loaded machine gets more. The storage hangs until the test ends. */
const CANCELLED_WITHIN_MS = 10_000;

let gated: GatedScene;
let services: OperationService[];
beforeEach(async () => {
  gated = await startGatedScene();
  services = [];
});
afterEach(async () => {
  for (const service of services) await service.stop();
  await gated.close();
});

function opened(options: Parameters<GatedScene['scene']['open']>[0] = {}): OperationService {
  const service = gated.scene.open(options);
  services.push(service);
  return service;
}

async function backUp(service: OperationService): Promise<OperationView> {
  const request = gated.scene.backupRequest();
  service.beginBackup(gated.scene.podId, request);
  return gated.scene.ended(service, request.operation_id);
}

it('cancels an operation at every stage while the storage hangs, and changes nothing', async () => {
  const { scene, gate } = gated;
  writeFileSync(join(scene.volume, 'random'), randomBytes(MIB));
  const never = new Promise<void>(() => undefined);
  const service = opened({
    runCommand: (file, args, bounds) =>
      file === 'sync'
        ? never.then(() => runCommand(file, args, bounds))
        : runCommand(file, args, bounds),
  });
  const kept = await backUp(service);
  writeFileSync(join(scene.volume, 'random'), randomBytes(MIB));
  const tree = fingerprintOf(scene.volume);

  /** Cancels an operation in `stage`, while the fake storage holds back every request from `heldCall` on. */
  async function cancelled(kind: 'backup' | 'restore', stage: string, heldCall: string) {
    const request =
      kind === 'backup' ? scene.backupRequest() : scene.restoreRequest(kept.snapshot_id ?? '');
    const { operation_id: id } = request;
    let isHeld = false;
    gate.watch((call) => {
      isHeld ||= call === heldCall && service.get(id).stage === stage;
      return isHeld ? never : undefined;
    });
    if ('path' in request) service.beginBackup(scene.podId, request);
    else service.beginRestore(scene.podId, request);
    const isThere = () => service.get(id).stage === stage && (isHeld || heldCall === 'none');
    await eventually(`${kind} ${stage}`, isThere);
    const startedMs = systemClock.monotonicMs();
    service.cancel(id);
    const view = await scene.ended(service, id);
    const tookMs = systemClock.monotonicMs() - startedMs;
    expect(view.stage, `${kind} ${stage}`).toBe('cancelled');
    expect(tookMs, `${kind} ${stage}`).toBeLessThan(CANCELLED_WITHIN_MS);
    expect(service.cancel(id), 'a repeat').toEqual(view);
    gate.watch(() => undefined);
  }

  await cancelled('backup', 'queued', 'none');
  await cancelled('backup', 'preparing', 'GET keys');
  await cancelled('backup', 'uploading', 'POST data');
  await cancelled('backup', 'verifying', 'GET keys');
  await cancelled('restore', 'queued', 'none');
  await cancelled('restore', 'fetching', 'GET data');
  // The restore is syncing the tree to disk.
  await cancelled('restore', 'verifying', 'none');
  expect(fingerprintOf(scene.volume)).toEqual(tree);
  expect(readdirSync(dirname(scene.volume))).toEqual(['_data']);
  expect((await backUp(service)).stage).toBe('done');
  expect(scene.restic('list', 'locks', '--no-lock')).toBe('');
});

it('cancels a restore whose pod does not stop', async () => {
  const { scene } = gated;
  const service = opened();
  writeFileSync(join(scene.volume, 'file'), 'kept');
  const kept = await backUp(service);
  scene.pod.state = () => 'moving';
  scene.pod.stops = false;
  const stuck = scene.restoreRequest(kept.snapshot_id ?? '');
  service.beginRestore(scene.podId, stuck);
  await eventually('stopping', () => service.get(stuck.operation_id).stage === 'stopping');
  service.cancel(stuck.operation_id);
  expect((await scene.ended(service, stuck.operation_id)).stage).toBe('cancelled');
  expect(readdirSync(dirname(scene.volume))).toEqual(['_data']);
});

/** Returns the milliseconds between changes of an operation's progress, from `stage` on. */
async function pausesOf(service: OperationService, id: string, stage: string): Promise<number[]> {
  const pauses: number[] = [];
  let last = '';
  let lastMs = 0;
  await eventually('the end', () => {
    const view = service.get(id);
    const { percent, processed_bytes, bytes_per_second, remaining_seconds } = view;
    const now = JSON.stringify([percent, processed_bytes, bytes_per_second, remaining_seconds]);
    const nowMs = systemClock.monotonicMs();
    if (view.stage !== stage) return view.finished_ms !== null && view.stage === 'done';
    if (now !== last && last !== '') pauses.push(nowMs - lastMs);
    if (now !== last) lastMs = nowMs;
    last = now;
    return false;
  });
  return pauses;
}

it('reports progress at least once a second in both directions', async () => {
  const { scene, gate } = gated;
  const service = opened();
  writeFileSync(join(scene.volume, 'random'), randomBytes(2 * MIB));
  gate.throttle(MIB);
  const backup = scene.backupRequest();
  service.beginBackup(scene.podId, backup);
  const there = await pausesOf(service, backup.operation_id, 'uploading');
  const { snapshot_id } = service.get(backup.operation_id);
  const restore = scene.restoreRequest(snapshot_id ?? '');
  service.beginRestore(scene.podId, restore);
  const back = await pausesOf(service, restore.operation_id, 'fetching');
  for (const pauses of [there, back]) {
    expect(pauses.length).toBeGreaterThan(2);
    expect(median(pauses)).toBeLessThan(1_000);
  }
});
