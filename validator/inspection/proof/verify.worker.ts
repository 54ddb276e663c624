/** Entry point of the verifier thread, which leaves the validator's event loop free. */
import { answerThreadCalls } from '#shared/runtime/thread-calls.ts';
import { verify } from './verify.tasks.ts';

answerThreadCalls(verify);
