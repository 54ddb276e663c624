/** Runs each proof task in a worker thread, which ends with the task or when the signal aborts. */
import { Worker } from 'node:worker_threads';
import type { OpenTask, ProofResult, ProofTask, RowsTask } from './proof.tasks.ts';

export type RunProof = {
  /** Returns the leaf hashes of a range of rows. */
  leaves(task: RowsTask, signal: AbortSignal): Promise<Uint8Array[]>;
  /** Returns individual rows. */
  rows(task: OpenTask, signal: AbortSignal): Promise<Uint8Array[]>;
};

export const proofThreads: RunProof = {
  async leaves(task, signal) {
    const result = await inThread(task, signal);
    return 'leaves' in result ? result.leaves : unexpectedResult();
  },
  async rows(task, signal) {
    const result = await inThread(task, signal);
    return 'rows' in result ? result.rows : unexpectedResult();
  },
};

/** Rejects with the signal's reason, or with the thread's error. */
async function inThread(task: ProofTask, signal: AbortSignal): Promise<ProofResult> {
  signal.throwIfAborted();
  const worker = new Worker(new URL('./proof.worker.ts', import.meta.url), { workerData: task });
  const end = Promise.withResolvers<ProofResult>();
  const abort = () => end.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  worker.once('message', end.resolve);
  worker.once('error', end.reject);
  worker.once('exit', (code) => end.reject(new Error(`the worker thread exited with ${code}`)));
  try {
    return await end.promise;
  } finally {
    signal.removeEventListener('abort', abort);
    await worker.terminate();
  }
}

function unexpectedResult(): never {
  throw new Error('a worker thread returned the result of another task');
}
