/**
 * Runs one restore: fetch, verify, swap while the pod is paused, commit once the pod runs on the new tree, else roll
 * back. The journal records every change of the pod's tree before and after the change. Every step can be repeated, so
 * the next agent process continues where this process stopped.
 */
import { lstat, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { copyUpParents } from './container-tree.ts';
import { type DataPlace, locateTarget, targetStateOf } from './data-path.ts';
import { ensureFolders, exists, moveOnce } from './durable-files.ts';
import { fetchSnapshot, putOnDisk } from './fetch-snapshot.ts';
import { isLiveTarget, isPutLive, putLive } from './live-target.ts';
import { isCancellable, OperationFailure } from './operation.state.ts';
import type { RestoreJournal, RestoreRow } from './operation.store.ts';
import { AgentStopping, type OperationContext, type RunPorts } from './operation-context.ts';

const POLL_MS = 200;
/** Time limit for the pod to stop. */
const STOP_DEADLINE_MS = 10 * 60_000;
/** Time limit for the pod to run on the restored tree, from the end of the pause. */
const START_DEADLINE_MS = 120_000;

const ROLLED_BACK = 'The pod did not run on the restored tree and has its old tree again';
const NOT_RUNNING = 'The pod does not run on the restored tree: its old tree is put back';

/** Resolves when the pod has the restored tree; rejects with OperationFailure or a signal's reason. */
export async function runRestore(
  work: OperationContext<RestoreRow>,
  ports: RunPorts,
): Promise<void> {
  try {
    if (isCancellable(work.row())) await prepare(work, ports);
  } catch (error) {
    if (error instanceof AgentStopping) throw error;
    // Runs before any write: on a full disk it frees the space for the write.
    await dropStaging(work, ports);
    throw error;
  }
  while (work.row().stage !== 'committed') {
    if (work.row().stage === 'swapping') await swap(work, ports);
    else await start(work, ports);
  }
  await rm(journalOf(work).folder, { recursive: true, force: true });
}

async function prepare(work: OperationContext<RestoreRow>, ports: RunPorts): Promise<void> {
  const { pod_id: podId, journal: left } = work.row();
  // The agent died after it had put the tree into the running pod.
  if (left !== null && (await isPutLive(left))) return work.move('committed', {});
  await dropStaging(work, ports);
  const journal = await fetchSnapshot(work, ports);
  if (journal.was_running && (await enterLive(work, journal, ports))) return;
  if (journal.was_running) work.appendLog('The pod is stopped and started again');
  work.move('stopping', { journal });
  ports.pause.wake(podId);
  const untilMs = ports.clock.monotonicMs() + STOP_DEADLINE_MS;
  await untilStopped(work, ports, { signal: work.signal, untilMs });
  // The target may have changed since the request; from here on the pod cannot change it.
  const place = await locateTarget(podId, work.row(), ports);
  const had_old = await makeReady(place, { journal, path: work.row().request.target_path }, ports);
  await checkDiskLimit(podId, { staged: journal.staged, old: had_old ? place.live : null }, ports);
  work.signal.throwIfAborted();
  work.move('swapping', { journal: { ...journal, live: place.live, had_old, step: 'ready' } });
}

/** Puts the tree into the running pod if nothing is at the target. Returns false if the pod must be stopped for that. */
async function enterLive(
  work: OperationContext<RestoreRow>,
  journal: RestoreJournal,
  ports: RunPorts,
): Promise<boolean> {
  const { pod_id: podId, request } = work.row();
  const place = await locateTarget(podId, work.row(), ports);
  const isEmpty = (await targetStateOf(podId, request.target_path, ports)) === 'empty';
  if (!(await isLiveTarget(place, isEmpty))) return false;
  await checkDiskLimit(podId, { staged: journal.staged, old: null }, ports);
  work.signal.throwIfAborted();
  work.note({ journal: { ...journal, live: place.live, is_live: true, step: 'ready' } });
  if (!(await putLive(place, journal.staged, ports))) return false;
  await putOnDisk(journal.folder, ports);
  work.appendLog('The restored folder is in place; the pod kept running');
  work.move('committed', {});
  return true;
}

/**
 * Checks and prepares the place of the restored tree while the pod is stopped. Returns true if the target has an entry
 * that must be moved aside first.
 */
async function makeReady(
  { source, live, kind }: DataPlace,
  { journal, path }: { journal: RestoreJournal; path: string },
  ports: RunPorts,
): Promise<boolean> {
  const { staged, container_id: containerId } = journal;
  if ('volume' in source) {
    if (containerId !== null) throw replaced();
    // Only a folder may replace a data root: the engine would mount the target of a link.
    if (live === source.volume.hostPath && !(await lstat(staged)).isDirectory()) {
      throw new OperationFailure('PathRefused', 'A file cannot replace a volume');
    }
    return kind !== null;
  }
  const { container } = source;
  if (container.containerId !== containerId) throw replaced();
  await copyUpParents(container, path, ports);
  // A file that only the image has is not in the container's layer: the restored file hides it.
  return exists(live);
}

/** Rejects with NoSpace if the pod would exceed its disk limit with the staged tree in place of the old one. */
async function checkDiskLimit(
  podId: string,
  { staged, old }: { staged: string; old: string | null },
  { freeBytesOf, folderBytes }: RunPorts,
): Promise<void> {
  const free = freeBytesOf(podId);
  if (free === null) return;
  const added = await folderBytes([staged]);
  const removed = old === null ? 0 : await folderBytes([old]);
  if (added === null || removed === null || added <= free + removed) return;
  const room = Math.max(0, free + removed);
  const message = `The restored tree has ${added} bytes, the pod's disk limit leaves ${room} bytes`;
  throw new OperationFailure('NoSpace', message);
}

/**
 * Waits until the pod is stopped; gives up at `untilMs` (monotonic). Once trees are moved, only the agent's end stops
 * the wait.
 */
async function untilStopped(
  work: OperationContext<RestoreRow>,
  { clock, pause }: RunPorts,
  { signal, untilMs }: { signal: AbortSignal; untilMs: number },
): Promise<void> {
  const { pod_id: podId } = work.row();
  for (;;) {
    const state = await pause.runStateOf(podId);
    // Without a pod no process uses the trees: trees that were moved are still put in place.
    if (state === 'gone' && isCancellable(work.row())) throw podGone();
    if (state === 'stopped' || state === 'failed' || state === 'gone') return;
    if (clock.monotonicMs() > untilMs) {
      throw new OperationFailure('DeadlineExceeded', 'The pod could not be stopped');
    }
    await clock.sleep(POLL_MS, signal);
  }
}

/**
 * Moves the trees to their new places, or back in the step `undoing`. The trees on disk determine the remaining steps.
 */
async function swap(work: OperationContext<RestoreRow>, ports: RunPorts): Promise<void> {
  await untilStopped(work, ports, { signal: work.stopping, untilMs: Infinity });
  const { step } = journalOf(work);
  if (step === 'undoing' || step === 'undone') return undo(work, ports);
  try {
    await exchange(work, journalOf(work));
  } catch (error) {
    // A crash does not begin a rollback: after a crash, the next agent first tries to continue.
    beginUndo(work, `The tree could not be exchanged (${codeOf(error)}): the old tree is put back`);
    return;
  }
  work.appendLog('The restored tree is in place');
  work.move('starting', {});
}

async function exchange(
  work: OperationContext<RestoreRow>,
  journal: RestoreJournal,
): Promise<void> {
  const { live, staged, folder, had_old: hadOld } = journal;
  if (journal.step === 'ready') {
    if (!(await exists(staged))) throw new Error('the staged tree is lost');
    if (hadOld) await moveOnce(live, join(folder, 'old'));
    work.note({ journal: { ...journal, step: 'old_aside' } });
  }
  if (journalOf(work).step !== 'old_aside') return;
  if (await exists(staged)) await ensureFolders(dirname(live));
  await moveOnce(staged, live);
  // If `staged` still exists, the entry at `live` is not the restored tree.
  if ((await exists(staged)) || !(await exists(live))) throw new Error('the staged tree is lost');
  work.note({ journal: { ...journal, step: 'new_in' } });
}

/** Moves the old tree back. The restored tree stays in the staging folder until that folder is deleted. */
async function undo(work: OperationContext<RestoreRow>, { pause }: RunPorts): Promise<never> {
  const journal = journalOf(work);
  const old = join(journal.folder, 'old');
  const hasOld = await exists(old);
  // If the old tree was never moved, or is already back, the current tree is the old one.
  if (hasOld || !journal.had_old) await moveOnce(journal.live, join(journal.folder, 'refused'));
  if (hasOld) await moveOnce(old, journal.live);
  if (await exists(old)) throw new Error('the old tree cannot be put back');
  work.note({ journal: { ...journal, step: 'undone' } });
  await rm(journal.folder, { recursive: true, force: true });
  if ((await pause.runStateOf(work.row().pod_id)) === 'gone') throw podGone();
  throw new OperationFailure('RolledBack', ROLLED_BACK);
}

/** Waits until the pod runs again; begins the rollback if it does not. */
async function start(work: OperationContext<RestoreRow>, ports: RunPorts): Promise<void> {
  const { clock, pause } = ports;
  const { pod_id: podId } = work.row();
  const journal = journalOf(work);
  pause.wake(podId);
  let untilMs = clock.monotonicMs() + START_DEADLINE_MS;
  let runningSinceMs: number | null = null;
  while (journal.was_running) {
    const state = await pause.runStateOf(podId);
    if (state === 'gone') break;
    const nowMs = clock.monotonicMs();
    // While the engine is unreachable, the pod's state is unknown: this time does not count.
    if (state === 'unknown') untilMs += POLL_MS;
    runningSinceMs = state === 'running' ? (runningSinceMs ?? nowMs) : null;
    if (runningSinceMs !== null && nowMs - runningSinceMs >= ports.settlingMs) break;
    if (state === 'failed' || nowMs > untilMs) {
      beginUndo(work, NOT_RUNNING);
      pause.wake(podId);
      return;
    }
    await clock.sleep(POLL_MS, work.stopping);
  }
  await checkContainer(journal, podId, ports);
  work.move('committed', {});
}

/** Rejects if an edit has replaced the container whose layer has the restored tree. */
async function checkContainer(
  { container_id: containerId, folder }: RestoreJournal,
  podId: string,
  { pause, containerFilesOf }: RunPorts,
): Promise<void> {
  if (containerId === null || (await pause.runStateOf(podId)) === 'gone') return;
  const container = await containerFilesOf(podId);
  if (container === 'unreadable') return;
  if (container !== 'absent' && container.containerId === containerId) return;
  await rm(folder, { recursive: true, force: true });
  throw replaced();
}

function beginUndo(work: OperationContext<RestoreRow>, why: string): void {
  work.move('swapping', { journal: { ...journalOf(work), step: 'undoing' } });
  work.appendLog(why);
}

function replaced(): OperationFailure {
  const message = 'An edit of the pod replaced the container and its folders. Restore again';
  return new OperationFailure('ContainerReplaced', message);
}

function podGone(): OperationFailure {
  return new OperationFailure('PodGone', 'The pod was removed');
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'incomplete';
}

async function dropStaging(work: OperationContext<RestoreRow>, ports: RunPorts): Promise<void> {
  const { pod_id: podId, journal } = work.row();
  ports.pause.wake(podId);
  if (journal !== null) await rm(journal.folder, { recursive: true, force: true, maxRetries: 5 });
}

function journalOf(work: OperationContext<RestoreRow>): RestoreJournal {
  const { journal } = work.row();
  if (journal === null) throw new Error('a restore has no journal');
  return journal;
}
