/** Maps the engine's status codes and error texts to EngineError. */
import { z } from 'zod';
import { EngineError, type EngineErrorKind } from './engine.ts';

const Refusal = z.object({
  statusCode: z.int().optional(),
  code: z.string().optional(),
  message: z.string().default(''),
  json: z.object({ message: z.string() }).optional().catch(undefined),
});

/** Limit of error texts; some contain whole stack traces. */
const MAX_MESSAGE_CHARS = 500;

/** Prefix that dockerode adds if the error body is not JSON. */
const CLIENT_PREFIX = /^\(HTTP code \d+\) [a-z ]+ - /;

const UNREACHABLE_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'EACCES',
  'ENOTFOUND',
  'ETIMEDOUT',
]);

/** First match wins. The engine returns 500 for nearly everything, so the text decides. */
const TEXTS: readonly [RegExp, EngineErrorKind][] = [
  [/port is already allocated|address already in use/i, 'port_busy'],
  // Left by a start during which the engine was killed: a task, or only the task's folder (moby/moby#50040).
  [
    /^task [0-9a-f]{64}: already exists|failed to start shim: mkdir \S+\/[0-9a-f]{64}: file exists/,
    'task_left',
  ],
  [/pool overlaps|overlapping IPv4/i, 'subnet_taken'],
  // The pattern must not match /opt/nvidia/nvidia_entrypoint.sh, the entrypoint of many images.
  [
    /could not select device driver|nvidia-(?:container|ctk|smi|modeset|uvm)|libnvidia|\bcdi\b|unresolvable .*device/i,
    'device',
  ],
];

/**
 * Patterns for pulls. The engine reports `HTTP 404 response body` if the server is not a registry and returned, for
 * example, a web page.
 */
const PULL_TEXTS: readonly [RegExp, EngineErrorKind][] = [
  [/verification failed for digest|unexpected (?:commit )?digest/i, 'image_digest_mismatch'],
  [/toomanyrequests|too many requests|rate limit|HTTP 429 response/i, 'image_rate_limited'],
  [/no space left on device|disk quota exceeded/i, 'image_no_space'],
  [/HTTP 408 response/i, 'image_unreachable'],
  [
    /unauthorized|authentication required|denied|forbidden|no basic auth|HTTP 40[13] response/i,
    'image_auth',
  ],
  [/manifest unknown|not found|does not exist|no such image|invalid reference/i, 'image_not_found'],
  [/name unknown|name invalid|manifest invalid|HTTP 4\d\d response/i, 'image_not_found'],
  // Manifest types that this engine does not support.
  [/no matching manifest|missing signature key|^unsupported\b/i, 'image_not_found'],
  [
    /dial tcp|lookup |connection refused|i\/o timeout|no such host|TLS|certificate|EOF|timeout|network|server gave HTTP/i,
    'image_unreachable',
  ],
];

/** Converts any error of a call to EngineError. An EngineError is returned unchanged. */
export function toEngineError(cause: unknown): EngineError {
  if (cause instanceof EngineError) return cause;
  const parsed = Refusal.safeParse(fieldsOf(cause));
  if (!parsed.success) return new EngineError('unavailable', 'no usable answer', { cause });
  const { statusCode, json, message } = parsed.data;
  const text = (json?.message ?? message.replace(CLIENT_PREFIX, ''))
    .trim()
    .slice(0, MAX_MESSAGE_CHARS);
  return new EngineError(kindOf(statusCode, parsed.data.code, text), text, { cause });
}

/** Converts an error text of a pull, from the progress stream or the call's error. */
export function toPullError(text: string, cause?: unknown): EngineError {
  const kind = PULL_TEXTS.find(([pattern]) => pattern.test(text))?.[1] ?? 'image_unreachable';
  return new EngineError(kind, text.slice(0, MAX_MESSAGE_CHARS), { cause });
}

/** HTTP status of the engine's response; undefined if there was none. */
export function statusOf(cause: unknown): number | undefined {
  return Refusal.safeParse(fieldsOf(cause)).data?.statusCode;
}

function kindOf(status: number | undefined, code: string | undefined, text: string) {
  if (status === undefined) {
    const isUnreachable =
      code === undefined || UNREACHABLE_CODES.has(code) || /hang up|aborted/i.test(text);
    return isUnreachable ? 'unavailable' : 'refused';
  }
  if (status === 404) return 'not_found';
  if (status === 409) return 'conflict';
  return TEXTS.find(([pattern]) => pattern.test(text))?.[1] ?? 'refused';
}

/** Returns the error with its message, which is not enumerable, and the fields that dockerode adds. */
function fieldsOf(cause: unknown): unknown {
  if (!(cause instanceof Error)) return {};
  const { message } = cause;
  return { ...cause, message };
}
