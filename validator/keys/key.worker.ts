/** The one place of a process where its keys are. */
import { answerThreadCalls } from '#shared/runtime/thread-calls.ts';
import { createKeyTasks } from './key.tasks.ts';

answerThreadCalls(createKeyTasks());
