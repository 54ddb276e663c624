/**
 * A restore drill tests a backup without changing a pod. It checks the repository and restores a sample of the snapshot
 * to a temporary folder. It compares the sample with the snapshot's metadata, and deletes the sample.
 */

import { createHash } from 'node:crypto';
import { lstat, mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { DrillRequest } from '#shared/api/agent/operations.ts';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import { checkSpace, watchProgress } from './fetch-snapshot.ts';
import { OperationFailure } from './operation.state.ts';
import type { VerifyRow } from './operation.store.ts';
import type { OperationContext, RunPorts } from './operation-context.ts';
import type { ListedNode } from './restic-output.ts';

/** Bits of Go's os.FileMode and their kernel equivalents. */
const MODE_BITS: readonly (readonly [go: number, kernel: number])[] = [
  [0x0080_0000, 0o4000],
  [0x0040_0000, 0o2000],
  [0x0010_0000, 0o1000],
];
const PERMISSIONS = 0o777;
const ALL_BITS = 0o7777;
/** Accepted difference of two times, which are both truncated to milliseconds. */
const MTIME_TOLERANCE_MS = 1;

/** Resolves if the sample equals the snapshot; rejects with OperationFailure or the signal's reason. */
export async function runVerify(work: OperationContext<VerifyRow>, ports: RunPorts): Promise<void> {
  // A killed agent may have left the folder.
  await dropScratch(work);
  try {
    await drill(work, ports);
  } finally {
    await dropScratch(work);
  }
}

async function drill(work: OperationContext<VerifyRow>, ports: RunPorts): Promise<void> {
  const { restic } = ports;
  const { id, request, pod_id: podId } = work.row();
  const parent = await scratchParentOf(podId, ports);
  const folder = join(parent, `.podwright-drill-${id}`);
  work.move('preparing', { journal: { folder } });
  const session = work.session([[folder, '(scratch)']]);
  await restic.checkVersion(session.signal);
  // Runs first because it reports missing packs at once, while reads retry for a while.
  await restic.check(session, 0);
  const sampler = createSampler(request.sample);
  await restic.list(session, request.snapshot_id, sampler.add);
  const files = sampler.chosen();
  const bytes = files.reduce((sum, file) => sum + file.size, 0);
  const total = { total_size: bytes, total_file_count: files.length };
  work.appendLog(`Reading back ${files.length} of ${sampler.seen()} files, ${bytes} bytes`);

  await mkdir(parent, { recursive: true, mode: 0o700 });
  await checkSpace(parent, total);
  await mkdir(folder, { mode: 0o700 });
  work.move('fetching', {});
  const watch = watchProgress(work, ports, total);
  // Without a pattern restic would restore everything.
  if (files.length > 0) {
    await restic.restore(session, {
      jail: { folder, readOnly: false, cwd: folder },
      id: request.snapshot_id,
      target: folder,
      only: files.map(({ path }) => path),
      onStart: watch.begin,
    });
  }
  watch.end();

  work.move('verifying', {});
  for (const file of files) {
    work.signal.throwIfAborted();
    await compare(folder, file);
  }
  // Reads some data of files that did not fit into the sample, too.
  const left = request.sample.max_bytes - bytes;
  if (files.length < sampler.seen() && left > 0) await restic.check(session, left);
  work.advance({ processed_files: files.length, processed_bytes: bytes });
  work.appendLog('All files equal the snapshot');
}

/**
 * Returns the folder beside the pod's volume in which a restore would stage its tree; for a pod that is not on this
 * host, a folder of the agent.
 */
async function scratchParentOf(podId: string, ports: RunPorts): Promise<string> {
  const [root] = await ports.dataRootsOf(podId).catch(() => []);
  return root === undefined ? ports.scratchFolder : dirname(root.hostPath);
}

/** Compares the metadata. restic has already compared the contents with their hashes during the restore. */
async function compare(folder: string, file: SampledFile): Promise<void> {
  const found = await lstat(join(folder, file.path)).catch(() => null);
  if (found === null || !found.isFile()) throw differs(file, 'was not restored');
  if (found.size !== file.size) throw differs(file, `has ${found.size} bytes, not ${file.size}`);
  const mode = kernelMode(file.mode);
  if ((found.mode & ALL_BITS) !== mode) {
    throw differs(file, `has mode ${(found.mode & ALL_BITS).toString(8)}, not ${mode.toString(8)}`);
  }
  const wantedMs = parseIsoTime(file.mtime);
  if (wantedMs === null || Math.abs(found.mtimeMs - wantedMs) <= MTIME_TOLERANCE_MS) return;
  throw differs(file, 'has another modification time');
}

/** Converts a mode of Go, as restic prints it, to one of the kernel. Exported for its test. */
export function kernelMode(mode: number): number {
  return MODE_BITS.reduce(
    (bits, [go, kernel]) => ((mode & go) === 0 ? bits : bits | kernel),
    mode & PERMISSIONS,
  );
}

function differs({ path }: SampledFile, how: string): OperationFailure {
  return new OperationFailure('VerificationFailed', `${JSON.stringify(path)} ${how}`);
}

async function dropScratch(work: OperationContext<VerifyRow>): Promise<void> {
  const { journal } = work.row();
  if (journal !== null) await rm(journal.folder, { recursive: true, force: true });
}

export type SampledFile = Pick<ListedNode, 'path' | 'size' | 'mode' | 'mtime'>;

/** restic replaces bytes that are not UTF-8 by this character: such a name cannot be passed to restic. */
const NO_TEXT = '\u{fffd}';

/**
 * Selects files of a snapshot at random, within bounds; the same seed selects the same files. Retains at most
 * `max_files` of any number of candidates. Pure.
 */
export function createSampler({ seed, max_files, max_bytes }: DrillRequest['sample']) {
  const ranked: { rank: string; file: SampledFile }[] = [];
  let largest: SampledFile | null = null;
  let seen = 0;

  /** Retains the files with the lowest hashes, so that the choice does not depend on the order of arrival. */
  function keep(file: SampledFile): void {
    const rank = createHash('sha256').update(`${seed}\0${file.path}`).digest('hex');
    if (ranked.length === max_files && rank > (ranked.at(-1)?.rank ?? '')) return;
    ranked.push({ rank, file });
    ranked.sort((a, b) => (a.rank < b.rank ? -1 : 1));
    ranked.length = Math.min(ranked.length, max_files);
  }

  return {
    add({ type, path, size, mode, mtime }: ListedNode): void {
      if (type !== 'file') return;
      seen += 1;
      if (size > max_bytes || path.includes(NO_TEXT)) return;
      const file = { path, size, mode, mtime };
      if (largest === null || size > largest.size) largest = file;
      keep(file);
    },
    /** Number of files in the snapshot. */
    seen: () => seen,
    /** Returns the largest file that fits, then random others as long as they fit. */
    chosen(): SampledFile[] {
      const files: SampledFile[] = [];
      let left = max_bytes;
      for (const file of [largest, ...ranked.map((entry) => entry.file)]) {
        const isKnown = file === null || files.some(({ path }) => path === file.path);
        if (isKnown || file.size > left || files.length === max_files) continue;
        files.push(file);
        left -= file.size;
      }
      return files;
    },
  };
}
