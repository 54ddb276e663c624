/** Structured logs: JSON lines on stdout, secrets redacted by key name, each with the id of its request. */
import { type DestinationStream, type Logger, pino } from 'pino';
import { currentRequestId } from './request-context.ts';

export type Log = Logger;

/** Values under these keys never reach a log, one level deep or nested. */
const SECRET_KEYS = [
  'password',
  'new_password',
  'current_password',
  'api_key',
  'apiKey',
  'key',
  'token',
  // Holds a notebook server's token.
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

/** `level` is a pino level; `name` is the process's name. */
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
      mixin: (_line, _level, log) => ofRequest(log),
    },
    destination ?? pino.destination({ fd: 1, sync: true }),
  );
}

/** The id of the request that a line is written for, unless the log names one itself. */
function ofRequest(log: Logger): { request_id?: string } {
  const id = currentRequestId();
  return id === null || 'request_id' in log.bindings() ? {} : { request_id: id };
}
