/** Runs one operation: keeps its row and heartbeat current, and records its end. */
import { rm } from 'node:fs/promises';
import { RepositoryAccess } from '#shared/api/agent/operations.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import {
  advanced,
  finished,
  isCancellable,
  isExhausted,
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
  type OperationContext,
  type RunPorts,
} from './operation-context.ts';

/** Interval of heartbeats and progress writes. */
export const HEARTBEAT_MS = 500;

const EXHAUSTED = new OperationFailure(
  'EngineFailed',
  'The agent stopped too often during this operation',
);
const POD_GONE = new OperationFailure('PodGone', 'The pod was removed');

/** Sealing context: a repository sealed for one operation cannot be decrypted for another. */
export const placeOfRepository = (id: string) => `operation ${id}`;

/**
 * Resolves when the operation has ended, or is left for the next agent, or its row cannot be written. Never rejects.
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

  /**
   * Appends a line to the operation's log. If the line cannot be written, as on a full disk, the operation continues
   * without the line.
   */
  function appendLog(line: string): void {
    try {
      note({ log: withLine(row().log, line) });
    } catch (error) {
      log.warn({ operation_id: id, err: error, line }, 'log line of an operation lost');
    }
  }

  function access(): RepositoryAccess {
    const { sealed_repository: sealed } = row();
    if (sealed === null)
      throw new OperationFailure('EngineFailed', 'The repository credentials are missing');
    return RepositoryAccess.parse(JSON.parse(ports.sealing.open(sealed, placeOfRepository(id))));
  }

  /** Returns true if the operation needs its pod and the pod was removed. A drill does not need its pod. */
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
        // A full disk may have space again at the next heartbeat.
        log.error({ operation_id: id, err: error }, 'operation heartbeat failed');
      }
    }
  }

  const work: OperationContext<OperationRow> = {
    row,
    move: (stage, patch) => note({ ...patch, stage }),
    note,
    advance: (now) => {
      progress = { ...progress, ...now };
    },
    appendLog,
    session: (paths) => ({
      access: access(),
      paths,
      signal,
      appendLog,
      meet: (obstacle) => ports.meet(id, obstacle),
    }),
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
    // Loaded on demand: most agents never need it.
    if (kind === 'backup') {
      const { runBackup } = await import('./run-backup.ts');
      await runBackup(work as OperationContext<BackupRow>, ports);
    } else if (kind === 'restore') {
      const { runRestore } = await import('./run-restore.ts');
      await runRestore(work as OperationContext<RestoreRow>, ports);
    } else {
      const { runVerify } = await import('./run-drill.ts');
      await runVerify(work as OperationContext<VerifyRow>, ports);
    }
    end('done');
  }

  /**
   * Throws if the operation was cancelled, its pod was removed or its attempts are used up. Before it throws, it
   * removes the staging folder. Does nothing once trees were moved.
   */
  async function checkWanted(): Promise<void> {
    if (!isCancellable(row())) return;
    const reason = whyNot();
    if (reason === null) return;
    const { kind, journal } = row();
    if (kind !== 'backup' && journal !== null) {
      await rm(journal.folder, { recursive: true, force: true });
    }
    throw reason;
  }

  function whyNot(): Error | null {
    if (row().cancel_requested) return new CancelRequested();
    if (isPodGone()) return POD_GONE;
    return isExhausted(row()) ? EXHAUSTED : null;
  }

  /** Returns true if the error ends the operation. Once trees were moved, only the restore itself can decide that. */
  const mayEnd = (error: unknown) => error instanceof OperationFailure || isCancellable(row());

  function settle(error: unknown): void {
    try {
      if (!mayEnd(error)) throw error;
      const outcome = error instanceof CancelRequested ? 'cancelled' : failureOf(error);
      if (outcome !== 'cancelled') {
        log.warn({ operation_id: id, detail: messageOf(error), ...outcome }, 'operation failed');
      }
      end(outcome);
    } catch (again) {
      log.error({ operation_id: id, err: again }, 'operation left unfinished');
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
  // Messages of other errors may contain host paths.
  return { code: 'EngineFailed', message: 'The host failed to run the operation' };
}
