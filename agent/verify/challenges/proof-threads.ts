/** Runs tasks in threads of their own, which end with the task, with the deadline, or with whoever gives up. */
import { Worker } from 'node:worker_threads';
import type { OpenTask, ProofResult, ProofTask, RowsTask, Walked } from './proof.tasks.ts';

export type RunProof = {
  /** The hashes of all rows of a part. */
  leaves(task: RowsTask, signal: AbortSignal): Promise<Uint8Array[]>;
  /** Some rows themselves. */
  rows(task: OpenTask, signal: AbortSignal): Promise<Uint8Array[]>;
  walk(task: Exclude<ProofTask, RowsTask | OpenTask>, signal: AbortSignal): Promise<Walked>;
};

export const proofThreads: RunProof = {
  async leaves(task, signal) {
    const result = await inThread(task, signal);
    return 'leaves' in result ? result.leaves : misunderstood();
  },
  async rows(task, signal) {
    const result = await inThread(task, signal);
    return 'rows' in result ? result.rows : misunderstood();
  },
  async walk(task, signal) {
    const result = await inThread(task, signal);
    return 'digest' in result ? result : misunderstood();
  },
};

/** Rejects with the signal's reason, or with the thread's error. */
async function inThread(task: ProofTask, signal: AbortSignal): Promise<ProofResult> {
  signal.throwIfAborted();
  const worker = new Worker(new URL('./proof.worker.ts', import.meta.url), { workerData: task });
  const end = Promise.withResolvers<ProofResult>();
  const giveUp = () => end.reject(signal.reason);
  signal.addEventListener('abort', giveUp, { once: true });
  worker.once('message', end.resolve);
  worker.once('error', end.reject);
  worker.once('exit', (code) => end.reject(new Error(`the thread ended with ${code}`)));
  try {
    return await end.promise;
  } finally {
    signal.removeEventListener('abort', giveUp);
    await worker.terminate();
  }
}

function misunderstood(): never {
  throw new Error('a thread did another task than it was given');
}
