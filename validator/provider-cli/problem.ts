/** Errors of the provider's command line: what happened and what to do. Pure. */
import { CallFailed, CallRefused } from '#shared/http/json-call.ts';
import { ConfigError, exitStatusOf } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';

/** A failure with a code that scripts may rely on. */
export type Problem = { code: string; message: string; hint: string; exitStatus: number };

/** Exit status for wrong usage. */
const MISUSED = 2;
const FAILED = 1;
const LOG_IN = 'npm run provider -- login';

/** A problem that this program detects itself. */
export class ProviderError extends Error {
  override name = 'ProviderError';
  readonly code: string;
  readonly hint: string;
  constructor(code: 'usage' | 'not_logged_in' | 'key_exists', message: string, hint: string) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}

/**
 * Describes an error for the user. Hints depend on `command`: `login` has no session that could have expired, and the
 * hints for `notice` name options of that command.
 */
export function problemOf(error: unknown, { command }: { command: string }): Problem {
  if (error instanceof ProviderError) {
    const { code, message, hint } = error;
    return { code, message, hint, exitStatus: code === 'usage' ? MISUSED : FAILED };
  }
  if (error instanceof CallRefused) return { ...refusal(error, command), exitStatus: FAILED };
  if (error instanceof CallFailed) return { ...failure(error), exitStatus: FAILED };
  return {
    code: error instanceof ConfigError ? 'configuration' : 'failed',
    message: messageOf(error),
    hint: 'Correct what the message names, then repeat the command.',
    exitStatus: exitStatusOf(error),
  };
}

function refusal(error: CallRefused, command: string): Omit<Problem, 'exitStatus'> {
  const { status, problem } = error;
  if (problem === null) {
    return {
      code: 'unexpected_answer',
      message: `The server is not a central API: status ${status}, without the error that a central API returns (${error.message.slice(0, MAX_CHARS)})`,
      hint: `Check the address of the central API: ${LOG_IN} --url https://…`,
    };
  }
  if (command === 'login') {
    const hint = "Check the key and this computer's clock, then log in again.";
    return { ...problem, hint: status === UNAUTHORIZED ? hint : (problem.hint ?? hint) };
  }
  if (status === UNAUTHORIZED || status === PORTAL_TOKEN_EXPIRED) {
    return {
      code: 'session_expired',
      message: 'The session has expired or was ended',
      hint: `Log in again: ${LOG_IN}`,
    };
  }
  if (problem.code === 'node_not_found' || problem.code === 'forbidden') {
    return { ...problem, hint: 'List your nodes with their ids: npm run provider -- list' };
  }
  if (command === 'notice') return { ...problem, hint: noticeHint(problem) };
  return { ...problem, hint: problem.hint ?? 'Change the command as the message says.' };
}

function noticeHint({ code, hint }: NonNullable<CallRefused['problem']>): string {
  if (code === 'conflict') {
    return 'Withdraw the present notice first: npm run provider -- notice ID --withdraw';
  }
  // The API's hint names the fields of the request.
  return hint === null || hint.includes('starting_at')
    ? 'Give --in or --at: 24h or more ahead with --minutes (1 to 60), 48h or more ahead with --removal.'
    : hint;
}

const UNAUTHORIZED = 401;
/** The portal's status for an expired session. */
const PORTAL_TOKEN_EXPIRED = 419;
const MAX_CHARS = 300;

function failure({ isReachable, message }: CallFailed): Omit<Problem, 'exitStatus'> {
  const hint = `Check the network and the address; to use another address: ${LOG_IN} --url https://…`;
  return isReachable
    ? {
        code: 'unexpected_answer',
        message: `The server is not a central API: ${message}`.slice(0, MAX_CHARS),
        hint,
      }
    : { code: 'api_unreachable', message: `The central API does not answer: ${message}`, hint };
}
