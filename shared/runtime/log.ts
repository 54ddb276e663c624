/** Structured logs: JSON lines on stdout, with secrets redacted by key and the current request id. */
import { type DestinationStream, type Logger, pino } from 'pino';
import { currentRequestId } from './request-context.ts';

export type Log = Logger;

/** Keys whose values are redacted, up to three levels deep. */
const SECRET_KEYS = [
  'password',
  'new_password',
  'current_password',
  'api_key',
  'apiKey',
  'key',
  'token',
  // Contains a notebook server's token.
  'jupyter_url',
  'secret',
  'seed',
  'signature',
  'authorization',
  'cookie',
  'environment',
  'x-api-key',
  'x-podwright-signature',
];

/** `level` is a pino level; `name` names the process. */
export function createLog(
  options: { name: string; level: string },
  destination?: DestinationStream,
): Log {
  const paths = SECRET_KEYS.flatMap((key) => [`["${key}"]`, `*["${key}"]`, `*.*["${key}"]`]);
  return pino(
    {
      name: options.name,
      level: options.level,
      redact: { paths, censor: '[redacted]' },
      mixin: (_line, _level, log) => requestField(log),
    },
    destination ?? pino.destination({ fd: 1, sync: true }),
  );
}

/** Adds the current request id, unless the log is bound to another. */
function requestField(log: Logger): { request_id?: string } {
  const id = currentRequestId();
  return id === null || 'request_id' in log.bindings() ? {} : { request_id: id };
}
