/** Errors of a move. Each message begins with a stable code. */
import { ConfigError } from '#shared/runtime/config.ts';
import { hasCode, messageOf, OverloadError } from '#shared/runtime/errors.ts';

/** Codes of problems that remain until the operator changes something. */
type RefusalCode =
  | 'already_moved'
  | 'copy_differs'
  | 'not_moved'
  | 'password_in_arguments'
  | 'schema_differs'
  | 'source_damaged'
  | 'source_unusable'
  | 'target_in_use'
  | 'target_not_empty'
  | 'target_no_rights'
  | 'target_unusable'
  | 'text_not_storable';

/** Codes of problems after which the same command may succeed. */
type FailureCode = 'connection_lost' | 'source_in_use' | 'target_failed' | 'target_unreachable';

export function refusal(code: RefusalCode, text: string, cause?: unknown): ConfigError {
  return new ConfigError(`${code}: ${text}`, { cause });
}

export function failure(code: FailureCode, text: string, cause?: unknown): Error {
  return new Error(`${code}: ${text}`, { cause });
}

/** SQLSTATE of a missing privilege. */
const NO_RIGHTS = '42501';
/** SQLSTATE of an error that the server reports. */
const SQLSTATE = /^[0-9A-Z]{5}$/;

/** Returns the error of a query to the target with its code. */
export function targetError(error: unknown): unknown {
  if (error instanceof ConfigError) return error;
  if (error instanceof OverloadError) {
    const text = `${messageOf(error)}. Repeat the command: it continues with the first row that is not saved`;
    return failure('connection_lost', text, error);
  }
  if (hasCode(error, NO_RIGHTS)) {
    const text = `${messageOf(error)}. The role needs the right to create tables: grant usage, create on schema public to ROLE`;
    return refusal('target_no_rights', text, error);
  }
  const { code } = error as { code?: unknown };
  if (typeof code !== 'string' || !SQLSTATE.test(code)) return error;
  return failure(
    'target_failed',
    `${messageOf(error)}. Repeat the command when the cause is removed: it continues`,
    error,
  );
}

/** Returns the error of the first connection to the target with its code. */
export function connectionError(error: unknown): Error {
  const text = messageOf(error);
  return error instanceof ConfigError
    ? refusal('target_unusable', text, error)
    : failure('target_unreachable', text, error);
}
