/** Worker thread for one task, so that the agent's event loop is not blocked. */
import { parentPort, workerData } from 'node:worker_threads';
import { type ProofTask, work } from './proof.tasks.ts';

parentPort?.postMessage(work(workerData as ProofTask));
