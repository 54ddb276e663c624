import { expect, it } from 'vitest';
import { EngineError, type EngineErrorKind } from './engine.ts';
import { toEngineError, toPullError } from './engine-errors.ts';

const refusal = (statusCode: number, message: string) =>
  Object.assign(new Error(`(HTTP code ${statusCode}) ${message}`), {
    statusCode,
    json: { message },
  });
const broken = (code: string) => Object.assign(new Error(code), { code });

it.each<[unknown, EngineErrorKind]>([
  [refusal(404, 'No such container: x'), 'not_found'],
  [refusal(409, 'Conflict. The container name "/x" is already in use'), 'conflict'],
  [
    refusal(500, 'driver failed: Bind for 0.0.0.0:20000 failed: port is already allocated'),
    'port_busy',
  ],
  [refusal(500, 'listen tcp4 0.0.0.0:20000: bind: address already in use'), 'port_busy'],
  [refusal(500, 'could not select device driver "" with capabilities: [[gpu]]'), 'device'],
  [refusal(500, `task ${'0f'.repeat(32)}: already exists`), 'task_left'],
  [
    refusal(
      500,
      `failed to start shim: mkdir /run/x/moby/${'0f'.repeat(32)}: file exists: unknown`,
    ),
    'task_left',
  ],
  [refusal(500, 'nvidia-container-cli: initialization error: no driver'), 'device'],
  [refusal(400, 'Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs'), 'refused'],
  [refusal(500, 'OCI runtime create failed: exec: "x": not found'), 'refused'],
  [broken('ECONNREFUSED'), 'unavailable'],
  [broken('ENOENT'), 'unavailable'],
  [broken('EPIPE'), 'unavailable'],
  [new Error('socket hang up'), 'unavailable'],
  ['nonsense', 'unavailable'],
  [new EngineError('deadline', 'late'), 'deadline'],
])('classifies the engine’s error %s', (error, kind) => {
  expect(toEngineError(error).kind).toBe(kind);
});

it.each<[string, EngineErrorKind]>([
  ['toomanyrequests: You have reached your pull rate limit', 'image_rate_limited'],
  ['failed to register layer: write /x: no space left on device', 'image_no_space'],
  ['unauthorized: authentication required', 'image_auth'],
  ['pull access denied for x, repository does not exist or may require docker login', 'image_auth'],
  ['manifest for x:9 not found: manifest unknown', 'image_not_found'],
  ['no matching manifest for linux/amd64 in the manifest list entries', 'image_not_found'],
  ['Get "https://x/v2/": dial tcp: lookup x: no such host', 'image_unreachable'],
  ['net/http: TLS handshake timeout', 'image_unreachable'],
  ['something new', 'image_unreachable'],
  ['name unknown: repository not known to registry', 'image_not_found'],
  ['name invalid: invalid repository name', 'image_not_found'],
  ['manifest invalid', 'image_not_found'],
  ['unsupported: unsupported', 'image_not_found'],
  ['missing signature key', 'image_not_found'],
  ['error parsing HTTP 404 response body: unexpected end of JSON input: ""', 'image_not_found'],
  ['error parsing HTTP 410 response body: invalid character', 'image_not_found'],
  ['error parsing HTTP 403 response body: invalid character', 'image_auth'],
  ['error parsing HTTP 408 response body: invalid character', 'image_unreachable'],
  ['error parsing HTTP 429 response body: invalid character', 'image_rate_limited'],
  ['received unexpected HTTP status: 503 Service Unavailable', 'image_unreachable'],
])('classifies the pull error %s', (text, kind) => {
  expect(toPullError(text).kind).toBe(kind);
});

it('passes the engine’s error text through, truncated', () => {
  expect(toEngineError(refusal(500, 'x'.repeat(5_000))).message).toHaveLength(500);
  expect(toEngineError(refusal(404, 'No such image')).message).toBe('No such image');
  const plain = Object.assign(new Error('(HTTP code 500) server error - no (HTTP code 1) x'), {
    statusCode: 500,
  });
  expect(toEngineError(plain).message).toBe('no (HTTP code 1) x');
});
