/** What a path of restic's REST protocol names (API v1 and v2). Pure. */

/** Kinds of objects, as folders of a repository are called. */
export const OBJECT_TYPES = ['data', 'index', 'keys', 'locks', 'snapshots'] as const;
export type ObjectType = (typeof OBJECT_TYPES)[number];

/** A name is the SHA-256 of the content, in lower-case hex. */
export type ObjectKey = { type: ObjectType; name: string };

/** A file of a repository: an object, or its one configuration. */
export type RepositoryFile = 'config' | ObjectKey;

export type ResticTarget =
  | { kind: 'repository' }
  | { kind: 'list'; type: ObjectType }
  | { kind: 'file'; file: RepositoryFile };

const REPOSITORY_ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const OBJECT_NAME = /^[0-9a-f]{64}$/;

/** Ids are UUIDs of ours: nothing else becomes the name of a folder. */
export function isRepositoryId(text: string): boolean {
  return REPOSITORY_ID.test(text);
}

/**
 * `path` as it came, undecoded: `/restic/<repository id>/…`. The id is null when it is none, the target for anything
 * that the protocol does not have.
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
