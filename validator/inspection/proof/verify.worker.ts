/** The thread that verifies, so that the validator goes on answering meanwhile. */
import { answerThreadCalls } from '#shared/runtime/thread-calls.ts';
import { verify } from './verify.tasks.ts';

answerThreadCalls(verify);
