/** One operation under way: its row kept true by the second, its end written whatever happens. */
import { rm } from 'node:fs/promises';
import { RepositoryAccess } from '#shared/api/agent/operations.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import {
  advanced,
  finished,
  isCancellable,
  isWornOut,
  mayMove,
  OperationFailure,
  withLine,
} from './operation.state.ts';
import type {
  BackupRow,
  OperationRow,
  Progress,
  RestoreRow,
  VerifyRow,
} from './operation.store.ts';
import {
  AgentStopping,
  CancelRequested,
  type RunPorts,
  type Working,
} from './operation-context.ts';

/** A row says twice a second that somebody works on it, and how far it is. */
export const HEARTBEAT_MS = 500;

const WORN_OUT = new OperationFailure(
  'EngineFailed',
  'The agent was ended too often while it worked on it',
);
const POD_GONE = new OperationFailure('PodGone', 'The pod was removed');

/** Where the sealed repository of an operation may be opened, and nowhere else. */
export const placeOfRepository = (id: string) => `operation ${id}`;

/**
 * Resolves when it has ended, or was left as it is: for the next agent, or where its row cannot be written. Never
 * rejects.
 */
export async function runOperation(
  id: string,
  ports: RunPorts,
  signals: { cancelled: AbortSignal; stopping: AbortSignal },
): Promise<void> {
  const { store, clock, log } = ports;
  const { stopping } = signals;
  const gone = new AbortController();
  const signal = AbortSignal.any([signals.cancelled, stopping, gone.signal]);
  const over = new AbortController();
  let progress: Partial<Progress> | null = null;
  let onBeat = () => {};

  function row(): OperationRow {
    const found = store.get(id);
    if (found === null) throw new Error(`operation ${id} is gone`);
    return found;
  }

  function note(patch: Partial<OperationRow>): void {
    const before = row();
    const { stage = before.stage } = patch;
    if (!mayMove(before, stage)) throw new Error(`no move from ${before.stage} to ${stage}`);
    const moved = progress === null ? before.progress : advanced(before.progress, progress);
    progress = null;
    const beat = { progress: moved, heartbeat_ms: clock.now() };
    store.put({ ...before, ...beat, ...patch } as OperationRow);
  }

  /** A line that cannot be written, as on a full disk, must not hide what it tells of. */
  function say(line: string): void {
    try {
      note({ log: withLine(row().log, line) });
    } catch (error) {
      log.warn({ operation_id: id, err: error, line }, 'a line of an operation is lost');
    }
  }

  function access(): RepositoryAccess {
    const { sealed_repository: sealed } = row();
    if (sealed === null) throw new OperationFailure('EngineFailed', 'The repository is not known');
    return RepositoryAccess.parse(JSON.parse(ports.sealing.open(sealed, placeOfRepository(id))));
  }

  /** A drill needs its pod no more. */
  function isPodGone(): boolean {
    return row().kind !== 'verify' && ports.isGone(row().pod_id);
  }

  async function beat(): Promise<void> {
    while (!over.signal.aborted) {
      await clock.sleep(HEARTBEAT_MS, over.signal).catch(() => undefined);
      if (over.signal.aborted) return;
      try {
        onBeat();
        note({});
        if (isPodGone()) gone.abort(POD_GONE);
      } catch (error) {
        // As on a full disk, which may have room again by the next one.
        log.error({ operation_id: id, err: error }, 'an operation cannot say that it is alive');
      }
    }
  }

  const work: Working<OperationRow> = {
    row,
    move: (stage, patch) => note({ ...patch, stage }),
    note,
    advance: (now) => {
      progress = { ...progress, ...now };
    },
    say,
    talk: (paths) => ({ access: access(), paths, signal, say }),
    signal,
    stopping,
    onBeat: (next) => {
      onBeat = next;
    },
  };

  function end(outcome: Parameters<typeof finished>[1]): void {
    note({});
    note(finished(row(), outcome, clock.now()));
    if (row().kind !== 'verify') ports.pause.wake(row().pod_id);
  }

  async function run(): Promise<void> {
    stopping.throwIfAborted();
    await checkWanted();
    note({ attempts: row().attempts + 1 });
    const { kind } = row();
    // Loaded only here: most agents never need it.
    if (kind === 'backup') {
      const { runBackup } = await import('./run-backup.ts');
      await runBackup(work as Working<BackupRow>, ports);
    } else if (kind === 'restore') {
      const { runRestore } = await import('./run-restore.ts');
      await runRestore(work as Working<RestoreRow>, ports);
    } else {
      const { runVerify } = await import('./run-drill.ts');
      await runVerify(work as Working<VerifyRow>, ports);
    }
    end('done');
  }

  /** What is not to be begun, or not again, leaves nothing of an earlier try. Trees that are moved stay. */
  async function checkWanted(): Promise<void> {
    if (!isCancellable(row())) return;
    const reason = whyNot();
    if (reason === null) return;
    const { journal } = row();
    if (journal !== null) await rm(journal.folder, { recursive: true, force: true });
    throw reason;
  }

  function whyNot(): Error | null {
    if (row().cancel_requested) return new CancelRequested();
    if (isPodGone()) return POD_GONE;
    return isWornOut(row()) ? WORN_OUT : null;
  }

  /** Only the restore itself knows when trees that it has moved are whole again; all else is tried again. */
  const mayEnd = (error: unknown) => error instanceof OperationFailure || isCancellable(row());

  function settle(error: unknown): void {
    try {
      if (!mayEnd(error)) throw error;
      const outcome = error instanceof CancelRequested ? 'cancelled' : failureOf(error);
      if (outcome !== 'cancelled') {
        log.warn({ operation_id: id, detail: messageOf(error), ...outcome }, 'an operation failed');
      }
      end(outcome);
    } catch (again) {
      log.error({ operation_id: id, err: again }, 'an operation is left unfinished for now');
    }
  }

  const beating = beat();
  try {
    await run();
  } catch (error) {
    if (!(error instanceof AgentStopping)) settle(error);
  }
  over.abort();
  await beating;
}

function failureOf(error: unknown): Pick<OperationFailure, 'code' | 'message'> {
  if (error instanceof OperationFailure) return { code: error.code, message: error.message };
  // Texts of other errors may name paths of the host.
  return { code: 'EngineFailed', message: 'The host could not do it' };
}
