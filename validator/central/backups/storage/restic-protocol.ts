/** restic's REST protocol (API v1 and v2): paths, byte ranges and error answers. Pure. */

/** Types of objects: the folders of a repository. */
export const OBJECT_TYPES = ['data', 'index', 'keys', 'locks', 'snapshots'] as const;
export type ObjectType = (typeof OBJECT_TYPES)[number];

/** `name`: SHA-256 of the content in lower-case hex. */
export type ObjectKey = { type: ObjectType; name: string };

export type RepositoryFile = 'config' | ObjectKey;

export type ResticTarget =
  | { kind: 'repository' }
  | { kind: 'list'; type: ObjectType }
  | { kind: 'file'; file: RepositoryFile };

const REPOSITORY_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const OBJECT_NAME = /^[0-9a-f]{64}$/;

/** Returns true for a UUID; other text must not become the name of a folder. */
export function isRepositoryId(text: string): boolean {
  return REPOSITORY_ID.test(text);
}

/**
 * Parses the undecoded path `/restic/<repository id>/…`. The id is null if it is not a UUID. The target is null if the
 * protocol does not define it.
 */
export function parseResticPath(path: string): { id: string | null; target: ResticTarget | null } {
  const [, id = '', below = ''] = /^\/restic\/([^/]+)\/?(.*)$/.exec(path) ?? [];
  return { id: isRepositoryId(id) ? id : null, target: targetOf(below) };
}

function targetOf(below: string): ResticTarget | null {
  if (below === '') return { kind: 'repository' };
  if (below === 'config') return { kind: 'file', file: 'config' };
  const [, first, name = ''] = /^([a-z]+)\/?([^/]*)$/.exec(below) ?? [];
  const type = OBJECT_TYPES.find((known) => known === first);
  if (type === undefined) return null;
  if (name === '') return { kind: 'list', type };
  return OBJECT_NAME.test(name) ? { kind: 'file', file: { type, name } } : null;
}

/** Statuses of the protocol and of rest-server, restic's server. */
export type ResticStatus = 400 | 401 | 403 | 404 | 408 | 413 | 416 | 503 | 507;

/**
 * An error response: a status and a short text without the error envelope of the API. The text is ASCII, because it is
 * also the reason phrase of the status line, which restic displays.
 */
export class ResticRefusal extends Error {
  override name = 'ResticRefusal';
  readonly status: ResticStatus;

  constructor(status: ResticStatus, message: string) {
    super(message);
    this.status = status;
  }
}

/** Returns 404, which restic distinguishes from failures. */
export function notFound(): ResticRefusal {
  return new ResticRefusal(404, 'Not found');
}

/** First and last byte, inclusive. */
export type ByteRange = { start: number; end: number };

/**
 * Parses a `Range` header (RFC 9110 14.2) with one range of bytes. Returns null for the whole file, also for
 * unsupported headers, and `unsatisfiable` for a range that begins beyond the end.
 */
export function byteRangeOf(
  header: string | undefined,
  sizeBytes: number,
): ByteRange | null | 'unsatisfiable' {
  const match = /^bytes=(\d{1,15})-(\d{0,15})$/.exec(header ?? '');
  if (match === null) return null;
  const start = Number(match[1]);
  const end = match[2] === '' ? sizeBytes - 1 : Math.min(Number(match[2]), sizeBytes - 1);
  if (match[2] !== '' && Number(match[2]) < start) return null;
  return start >= sizeBytes ? 'unsatisfiable' : { start, end };
}
