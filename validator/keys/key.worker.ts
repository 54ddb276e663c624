/** Entry point of the key thread, the only place where keys are in memory. */
import { answerThreadCalls } from '#shared/runtime/thread-calls.ts';
import { createKeyTasks } from './key.tasks.ts';

answerThreadCalls(createKeyTasks());
