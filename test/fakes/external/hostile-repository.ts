/**
 * Repositories that restic would never write, as an attacker who has the password could write them: changed folders
 * with all hashes corrected.
 */
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RepositoryKey, seal, unseal } from './quick-repository.ts';

const ID_BYTES = 32;

type Index = { packs: { id: string; blobs: Blob[] }[] };
type Blob = { id: string; type: 'data' | 'tree'; offset: number; length: number };

const idOf = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex');

/**
 * Rewrites the text of every folder of a version 1 repository (uncompressed) with `change`, which must preserve the
 * length. Returns the id of its only snapshot.
 */
export function rewriteFolders(
  location: string,
  key: RepositoryKey,
  change: (json: string) => string,
): string {
  const [indexName = ''] = readdirSync(join(location, 'index'));
  const index: Index = JSON.parse(unseal(key, take(location, 'index', indexName)).toString());
  const ids = new Map<string, string>();
  const withIds = (text: string) => {
    let renamed = text;
    for (const [before, after] of ids) renamed = renamed.replaceAll(before, after);
    return renamed;
  };
  const packs = index.packs.map(({ id, blobs }) => ({
    blobs,
    content: take(location, join('data', id.slice(0, 2)), id),
  }));
  // A folder contains the hashes of its subfolders, so the changes repeat until no hash changes.
  for (let isChanging = true; isChanging; ) {
    isChanging = false;
    for (const { blobs, content } of packs) {
      for (const blob of blobs.filter(({ type }) => type === 'tree')) {
        const before = unseal(key, content.subarray(blob.offset, blob.offset + blob.length));
        const after = Buffer.from(withIds(change(before.toString())));
        if (after.equals(before)) continue;
        if (after.length !== before.length)
          throw new Error('the change altered the length of a folder');
        seal(key, after).copy(content, blob.offset);
        ids.set(blob.id, idOf(after));
        blob.id = idOf(after);
        isChanging = true;
      }
    }
  }
  const renamedPacks = packs.map(({ blobs, content }) => {
    rewriteHeader(content, key, ids);
    const id = idOf(content);
    put(location, join('data', id.slice(0, 2)), content);
    return { id, blobs };
  });
  put(location, 'index', seal(key, Buffer.from(JSON.stringify({ packs: renamedPacks }))));
  const [snapshotName = ''] = readdirSync(join(location, 'snapshots'));
  const snapshot = unseal(key, take(location, 'snapshots', snapshotName)).toString();
  return put(location, 'snapshots', seal(key, Buffer.from(withIds(snapshot))));
}

/** Rewrites the encrypted list of contents at the end of a pack. The list's length follows it. */
function rewriteHeader(pack: Buffer, key: RepositoryKey, ids: Map<string, string>): void {
  const length = pack.readUInt32LE(pack.length - 4);
  const start = pack.length - 4 - length;
  const header = unseal(key, pack.subarray(start, start + length));
  for (const [before, after] of ids) {
    const at = header.indexOf(Buffer.from(before, 'hex'));
    if (at >= 0) Buffer.from(after, 'hex').copy(header, at, 0, ID_BYTES);
  }
  seal(key, header).copy(pack, start);
}

function take(location: string, folder: string, name: string): Buffer {
  const path = join(location, folder, name);
  const content = readFileSync(path);
  chmodSync(path, 0o600);
  rmSync(path);
  return content;
}

function put(location: string, folder: string, content: Buffer): string {
  const id = idOf(content);
  mkdirSync(join(location, folder), { recursive: true });
  writeFileSync(join(location, folder, id), content);
  return id;
}
