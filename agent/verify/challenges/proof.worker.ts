/** A thread for one task, so that the agent goes on answering meanwhile. */
import { parentPort, workerData } from 'node:worker_threads';
import { type ProofTask, work } from './proof.tasks.ts';

parentPort?.postMessage(await work(workerData as ProofTask));
