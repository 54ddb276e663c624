/** What the engine's refusals mean: status codes and texts -> EngineError (agent reference 2.1). */
import { z } from 'zod';
import { EngineError, type EngineErrorKind } from './engine.ts';

const Refusal = z.object({
  statusCode: z.int().optional(),
  code: z.string().optional(),
  message: z.string().default(''),
  json: z.object({ message: z.string() }).optional().catch(undefined),
});

/** Longest engine text that is passed on; some carry whole stack traces. */
const MAX_MESSAGE_CHARS = 500;

/** What the client puts before the engine's words where it could not read them as JSON. */
const CLIENTS_OWN = /^\(HTTP code \d+\) [a-z ]+ - /;

const UNREACHABLE_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'EACCES',
  'ENOTFOUND',
  'ETIMEDOUT',
]);

/** First match wins. The engine says 500 for nearly everything, so the text decides. */
const TEXTS: readonly [RegExp, EngineErrorKind][] = [
  [/port is already allocated|address already in use/i, 'port_busy'],
  // Of a start that the engine was killed in: the task, or only its folder (moby/moby#50040).
  [
    /^task [0-9a-f]{64}: already exists|failed to start shim: mkdir \S+\/[0-9a-f]{64}: file exists/,
    'task_left',
  ],
  [/pool overlaps|overlapping IPv4/i, 'subnet_taken'],
  // Not every text with the name in it: images begin with /opt/nvidia/nvidia_entrypoint.sh.
  [
    /could not select device driver|nvidia-(?:container|ctk|smi|modeset|uvm)|libnvidia|\bcdi\b|unresolvable .*device/i,
    'device',
  ],
];

/** `HTTP 404 response body` is what the engine says of an answer that is no registry's, such as a web page. */
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
  // Manifests of a kind that this engine cannot read, and registries that cannot be asked for them.
  [/no matching manifest|missing signature key|^unsupported\b/i, 'image_not_found'],
  [
    /dial tcp|lookup |connection refused|i\/o timeout|no such host|TLS|certificate|EOF|timeout|network|server gave HTTP/i,
    'image_unreachable',
  ],
];

/** The EngineError for anything that a call rejected with; an EngineError stays as it is. */
export function toEngineError(cause: unknown): EngineError {
  if (cause instanceof EngineError) return cause;
  const parsed = Refusal.safeParse(fieldsOf(cause));
  if (!parsed.success) return new EngineError('unavailable', 'no usable answer', { cause });
  const { statusCode, json, message } = parsed.data;
  const text = (json?.message ?? message.replace(CLIENTS_OWN, ''))
    .trim()
    .slice(0, MAX_MESSAGE_CHARS);
  return new EngineError(kindOf(statusCode, parsed.data.code, text), text, { cause });
}

/** The same for the words of a pull, which arrive in the progress stream or as the call's refusal. */
export function toPullError(text: string, cause?: unknown): EngineError {
  const kind = PULL_TEXTS.find(([pattern]) => pattern.test(text))?.[1] ?? 'image_unreachable';
  return new EngineError(kind, text.slice(0, MAX_MESSAGE_CHARS), { cause });
}

/** Of an answer that the engine gave; undefined where there was none. */
export function statusOf(cause: unknown): number | undefined {
  return Refusal.safeParse(fieldsOf(cause)).data?.statusCode;
}

function kindOf(status: number | undefined, code: string | undefined, text: string) {
  if (status === undefined) {
    const gone = code === undefined || UNREACHABLE_CODES.has(code) || /hang up|aborted/i.test(text);
    return gone ? 'unavailable' : 'refused';
  }
  if (status === 404) return 'not_found';
  if (status === 409) return 'conflict';
  return TEXTS.find(([pattern]) => pattern.test(text))?.[1] ?? 'refused';
}

/** An error's message is not enumerable; what the client adds to it is. */
function fieldsOf(cause: unknown): unknown {
  if (!(cause instanceof Error)) return {};
  const { message } = cause;
  return { ...cause, message };
}
