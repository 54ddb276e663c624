/**
 * One restore: fetched, verified, swapped in while the pod is held, kept once the pod runs on it, else undone. Every
 * step that changes the pod's tree is in the journal before and after it and can be repeated, so that the next agent
 * goes on wherever this one was ended (agent reference 14).
 */
import { lstat, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { locateTarget } from './data-path.ts';
import { ensureFolders, exists, moveOnce } from './durable-files.ts';
import { fetchSnapshot } from './fetch-snapshot.ts';
import { isCancellable, OperationFailure } from './operation.state.ts';
import type { RestoreJournal, RestoreRow } from './operation.store.ts';
import { AgentStopping, type RunPorts, type Working } from './operation-context.ts';

const POLL_MS = 200;
/** A pod that has not stopped by then will not. */
const STOP_DEADLINE_MS = 10 * 60_000;
/** From its release until the pod runs on the restored tree. */
const START_DEADLINE_MS = 120_000;

const ROLLED_BACK = 'The pod did not run on the restored tree and has its old one again';
const NOT_RUNNING = 'The pod does not run on the restored tree: its old one comes back';

/** Resolves when the pod has the restored tree; rejects with OperationFailure or a signal's reason. */
export async function runRestore(work: Working<RestoreRow>, ports: RunPorts): Promise<void> {
  try {
    if (isCancellable(work.row())) await prepare(work, ports);
  } catch (error) {
    if (error instanceof AgentStopping) throw error;
    // Before anything is written: on a full disk it is what makes room for that.
    await dropStaging(work, ports);
    throw error;
  }
  while (work.row().stage !== 'committed') {
    if (work.row().stage === 'swapping') await swap(work, ports);
    else await start(work, ports);
  }
  await rm(journalOf(work).folder, { recursive: true, force: true });
}

async function prepare(work: Working<RestoreRow>, ports: RunPorts): Promise<void> {
  const { pod_id: podId } = work.row();
  await dropStaging(work, ports);
  const journal = await fetchSnapshot(work, ports);
  work.move('stopping', { journal });
  ports.pause.wake(podId);
  const untilMs = ports.clock.monotonicMs() + STOP_DEADLINE_MS;
  await untilStopped(work, ports, { signal: work.signal, untilMs });
  // It may be another place by now; and from here on nothing in the pod can change it.
  const place = await locateTarget(podId, work.row(), ports);
  const isRoot = place.live === place.root.hostPath;
  // The engine would mount what a link there points to.
  if (isRoot && !(await lstat(journal.staged)).isDirectory()) {
    throw new OperationFailure('PathRefused', 'A file cannot take the place of a volume');
  }
  work.signal.throwIfAborted();
  const ready = { live: place.live, had_old: place.kind !== null, step: 'ready' } as const;
  work.move('swapping', { journal: { ...journal, ...ready } });
}

/** Gives up at `untilMs`, monotonic: once trees are moved only the end of it all is left to wait for. */
async function untilStopped(
  work: Working<RestoreRow>,
  { clock, pause }: RunPorts,
  { signal, untilMs }: { signal: AbortSignal; untilMs: number },
): Promise<void> {
  const { pod_id: podId } = work.row();
  for (;;) {
    const standing = await pause.runStateOf(podId);
    // Trees that are moved are put in place for whoever has them next: nothing of the pod was running.
    if (standing === 'gone' && isCancellable(work.row())) throw podGone();
    if (standing === 'stopped' || standing === 'failed' || standing === 'gone') return;
    if (clock.monotonicMs() > untilMs) {
      throw new OperationFailure('DeadlineExceeded', 'The pod could not be stopped');
    }
    await clock.sleep(POLL_MS, signal);
  }
}

/** Forward, or back where the journal says so; the trees that are there tell what is still to be done. */
async function swap(work: Working<RestoreRow>, ports: RunPorts): Promise<void> {
  await untilStopped(work, ports, { signal: work.stopping, untilMs: Infinity });
  const { step } = journalOf(work);
  if (step === 'undoing' || step === 'undone') return undo(work, ports);
  try {
    await exchange(work, journalOf(work));
  } catch (error) {
    // A crash cannot write this: the next agent tries to go on first.
    beginUndo(work, `The tree could not be exchanged (${codeOf(error)}): the old one comes back`);
    return;
  }
  work.say('The restored tree is in place');
  work.move('starting', {});
}

async function exchange(work: Working<RestoreRow>, journal: RestoreJournal): Promise<void> {
  const { live, staged, folder, had_old: hadOld } = journal;
  if (journal.step === 'ready') {
    if (!(await exists(staged))) throw new Error('the staged tree is lost');
    if (hadOld) await moveOnce(live, join(folder, 'old'));
    work.note({ journal: { ...journal, step: 'old_aside' } });
  }
  if (journalOf(work).step !== 'old_aside') return;
  await ensureFolders(dirname(live));
  await moveOnce(staged, live);
  // What else has come to its place is not what was asked for.
  if ((await exists(staged)) || !(await exists(live))) throw new Error('the staged tree is lost');
  work.note({ journal: { ...journal, step: 'new_in' } });
}

/** The old tree back; the restored one lies in the staging folder until that is removed. */
async function undo(work: Working<RestoreRow>, { pause }: RunPorts): Promise<never> {
  const journal = journalOf(work);
  const old = join(journal.folder, 'old');
  const hasOld = await exists(old);
  // Where the old tree was never moved, or is back already, what is there is the old one.
  if (hasOld || !journal.had_old) await moveOnce(journal.live, join(journal.folder, 'refused'));
  if (hasOld) await moveOnce(old, journal.live);
  if (await exists(old)) throw new Error('the old tree cannot be put back');
  work.note({ journal: { ...journal, step: 'undone' } });
  await rm(journal.folder, { recursive: true, force: true });
  if ((await pause.runStateOf(work.row().pod_id)) === 'gone') throw podGone();
  throw new OperationFailure('RolledBack', ROLLED_BACK);
}

/** The pod runs again, or the tree goes back. */
async function start(work: Working<RestoreRow>, ports: RunPorts): Promise<void> {
  const { clock, pause } = ports;
  const { pod_id: podId } = work.row();
  const journal = journalOf(work);
  pause.wake(podId);
  let untilMs = clock.monotonicMs() + START_DEADLINE_MS;
  let runningSinceMs: number | null = null;
  while (journal.was_running) {
    const standing = await pause.runStateOf(podId);
    if (standing === 'gone') break;
    const nowMs = clock.monotonicMs();
    // An engine that is away says nothing about the pod.
    if (standing === 'unknown') untilMs += POLL_MS;
    runningSinceMs = standing === 'running' ? (runningSinceMs ?? nowMs) : null;
    if (runningSinceMs !== null && nowMs - runningSinceMs >= ports.settlingMs) break;
    if (standing === 'failed' || nowMs > untilMs) {
      beginUndo(work, NOT_RUNNING);
      pause.wake(podId);
      return;
    }
    await clock.sleep(POLL_MS, work.stopping);
  }
  work.move('committed', {});
}

function beginUndo(work: Working<RestoreRow>, why: string): void {
  work.move('swapping', { journal: { ...journalOf(work), step: 'undoing' } });
  work.say(why);
}

function podGone(): OperationFailure {
  return new OperationFailure('PodGone', 'The pod was removed');
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'incomplete';
}

async function dropStaging(work: Working<RestoreRow>, ports: RunPorts): Promise<void> {
  const { pod_id: podId, journal } = work.row();
  ports.pause.wake(podId);
  if (journal !== null) await rm(journal.folder, { recursive: true, force: true, maxRetries: 5 });
}

function journalOf(work: Working<RestoreRow>): RestoreJournal {
  const { journal } = work.row();
  if (journal === null) throw new Error('a restore has no journal');
  return journal;
}
