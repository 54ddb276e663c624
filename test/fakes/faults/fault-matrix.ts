/**
 * Kills the agent, restic or the central API during backups and restores, at one request of restic or one stage of the
 * agent, and checks the result after each kill.
 */
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import type { OperationView } from '#shared/api/agent/operations.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import type { OperationService } from '../../../agent/backups/operation.service.ts';
import { fingerprintOf } from '../mixed-tree.ts';
import type { Asked, FaultPod, FaultScene } from '../scenes/fault-scene.ts';
import type { Order } from './operation-worker.ts';
import type { Moment, StorageCall } from './storage-gate.ts';

export const VICTIMS = ['agent', 'restic', 'central'] as const;
export type Victim = (typeof VICTIMS)[number];

/** The `nth` request of its kind, either before the storage receives it or before restic receives the answer. */
export type StorageMoment = { call: StorageCall; nth: number; moment: Moment };

const MIB = 1024 * 1024;
/** Time for which restic retries; longer than any restart of the central API. */
const PATIENCE_MS = 60_000;
const LATER = 'later';

export type FaultMatrix = ReturnType<typeof createFaultMatrix>;

export function createFaultMatrix(scene: FaultScene) {
  /** Resolves once `kill` has ended the process. The request at that moment is never answered. */
  function killAt(at: StorageMoment, kill: () => Promise<unknown>): Promise<void> {
    return new Promise((resolve, reject) => {
      scene.gate.watch(async (call, moment, nth) => {
        if (call !== at.call || nth !== at.nth || moment !== at.moment) return;
        scene.gate.watch(() => undefined);
        await kill().then(() => resolve(), reject);
        throw new Error('cut off');
      });
    });
  }

  function begin(service: OperationService, { podId }: FaultPod, asked: Asked): void {
    if (asked.kind === 'backup') service.beginBackup(podId, asked.request);
    else service.beginRestore(podId, asked.request);
  }

  /** Kills the agent's process; a new agent then resumes the operation by itself. */
  async function killAgent(
    pod: FaultPod,
    asked: Asked,
    at: StorageMoment | NonNullable<Order['haltAt']>,
  ): Promise<OperationService> {
    const isStage = 'stage' in at;
    const worker = scene.startWorker(pod, { asked, haltAt: isStage ? at : null });
    if (isStage) await worker.halted().finally(worker.kill);
    else await killAt(at, worker.kill);
    const next = pod.open();
    next.start();
    // If the operation was never stored, the caller requests it again.
    if (pod.store.get(asked.request.operation_id) === null) begin(next, pod, asked);
    return next;
  }

  async function killOther(
    victim: 'restic' | 'central',
    pod: FaultPod,
    asked: Asked,
    at: StorageMoment,
  ): Promise<OperationService> {
    const service = pod.open({ program: pod.program, patienceMs: PATIENCE_MS });
    const kill = victim === 'restic' ? async () => pod.killRestic() : scene.killCentral;
    const killed = killAt(at, kill);
    begin(service, pod, asked);
    await killed;
    if (victim === 'central') await scene.startCentral();
    return service;
  }

  async function strike(
    victim: Victim,
    pod: FaultPod,
    asked: Asked,
    at: StorageMoment,
  ): Promise<OperationView> {
    const service =
      victim === 'agent'
        ? await killAgent(pod, asked, at)
        : await killOther(victim, pod, asked, at);
    const view = await pod.ended(service, asked.request.operation_id);
    const wanted =
      victim === 'restic'
        ? { stage: 'failed', error: { code: 'EngineFailed' } }
        : { stage: 'done', error: null };
    const { stage, error } = view;
    const what = `${asked.kind}: ${victim} killed ${at.moment} ${at.call}: ${view.log.join('; ')}`;
    expect({ stage, error }, what).toMatchObject(wanted);
    await service.stop();
    return view;
  }

  /** Waits until the backup completes by itself and checks the repository; returns the snapshot. */
  async function backedUp(pod: FaultPod): Promise<string> {
    const service = pod.open();
    const request = pod.backupRequest({ create_repository: false });
    service.beginBackup(pod.podId, request);
    const view = await pod.ended(service, request.operation_id);
    expect(view, 'the next backup').toMatchObject({ stage: 'done', quality: 'full', error: null });
    await service.stop();
    return view.snapshot_id ?? '';
  }

  /** Checks that the snapshot equals the volume and that no lock is left. */
  function expectWhole(pod: FaultPod, snapshot: string, tree: readonly string[]): void {
    expect(fingerprintOf(pod.volume), 'the file tree of the pod').toEqual(tree);
    expect(readdirSync(dirname(pod.volume)), 'leftovers beside the volume').toEqual(['_data']);
    expect(pod.restic('list', 'locks', '--no-lock'), 'locks').toBe('');
    expect(pod.restic('check', '--read-data')).toContain('no errors were found');
    const target = join(pod.folder, 'read-back');
    pod.restic('restore', snapshot, '--target', target);
    expect(fingerprintOf(join(target, '_data')), 'the snapshot').toEqual(tree);
    rmSync(target, { recursive: true });
  }

  async function newPod(): Promise<FaultPod> {
    const pod = await scene.newPod();
    writeFileSync(join(pod.volume, 'random'), systemRandom.bytes(MIB));
    writeFileSync(join(pod.volume, 'text'), 'the same line again and again\n'.repeat(10_000));
    return pod;
  }

  return {
    newPod,
    backedUp,
    killAgent,

    async restored(pod: FaultPod, snapshot: string): Promise<void> {
      const service = pod.open();
      const request = pod.restoreRequest(snapshot);
      service.beginRestore(pod.podId, request);
      expect((await pod.ended(service, request.operation_id)).stage).toBe('done');
      await service.stop();
    },

    /** Returns restic's requests to the storage in a run without faults, in order. */
    async callsOf(work: () => Promise<unknown>): Promise<StorageMoment[]> {
      const calls: StorageMoment[] = [];
      scene.gate.watch((call, moment, nth) => {
        calls.push({ call, nth, moment });
      });
      await work();
      scene.gate.watch(() => undefined);
      return calls;
    },

    async backup(victim: Victim, at: StorageMoment): Promise<void> {
      const pod = await newPod();
      const tree = fingerprintOf(pod.volume);
      const request = pod.backupRequest();
      const view = await strike(victim, pod, { kind: 'backup', request }, at);
      expect(view.snapshot_id !== null).toBe(view.stage === 'done');
      expectWhole(pod, view.snapshot_id ?? (await backedUp(pod)), tree);
      pod.close();
    },

    /** `tree`: expected content of the pod's `snapshot`. */
    async restore(
      victim: Victim,
      at: StorageMoment,
      pod: FaultPod,
      { snapshot, tree }: { snapshot: string; tree: readonly string[] },
    ): Promise<void> {
      writeFileSync(join(pod.volume, LATER), 'of the pod');
      const before = fingerprintOf(pod.volume);
      const request = pod.restoreRequest(snapshot);
      const view = await strike(victim, pod, { kind: 'restore', request }, at);
      if (view.stage === 'done') return expectWhole(pod, snapshot, tree);
      expect(fingerprintOf(pod.volume)).toEqual(before);
      expectWhole(pod, await backedUp(pod), before);
    },

    /** Kills the agent when the operation's row reaches a stage. */
    async restoreAtStage(
      at: NonNullable<Order['haltAt']>,
      pod: FaultPod,
      { snapshot, tree }: { snapshot: string; tree: readonly string[] },
    ): Promise<void> {
      writeFileSync(join(pod.volume, LATER), 'of the pod');
      const request = pod.restoreRequest(snapshot);
      const next = await killAgent(pod, { kind: 'restore', request }, at);
      const view = await pod.ended(next, request.operation_id);
      const what = `killed ${at.when} ${at.stage}`;
      expect(view, what).toMatchObject({ stage: 'done', error: null });
      await next.stop();
      expectWhole(pod, snapshot, tree);
    },
  };
}
