/** The work of a challenge itself, as a worker thread does it. */
import { mkdir, open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemClock } from '#shared/clock.ts';
import { leafHash } from '#shared/proof-of-work/merkle.ts';
import { matrixRows, productRow, rowBytes } from '#shared/proof-of-work/product.ts';
import { filledBlocks, type Walk, walk } from '#shared/proof-of-work/walk.ts';

/** Rows of A that are made at a time. */
const ROWS_AT_ONCE = 16;
/** Filled at a time. */
const FILL_BYTES = 4 * 1024 * 1024;

export type RowsTask = { kind: 'rows'; seed: Uint8Array; n: number; from: number; to: number };
export type OpenTask = { kind: 'open'; seed: Uint8Array; n: number; indices: readonly number[] };
export type WalkTask = { seed: Uint8Array; walk: Walk };
export type ProofTask =
  | RowsTask
  | OpenTask
  | ({ kind: 'memory' } & WalkTask)
  /** In a new file at `path`, which is gone afterwards. */
  | ({ kind: 'disk'; path: string } & WalkTask);

export type Walked = { digest: Uint8Array; fillMs: number; walkMs: number };
/** Leaf hashes of rows, rows themselves, or how a walk ended: as the task's kind says. */
export type ProofResult = { leaves: Uint8Array[] } | { rows: Uint8Array[] } | Walked;

/** Whatever the task asks for. */
export function work(task: ProofTask): Promise<ProofResult> | ProofResult {
  switch (task.kind) {
    case 'rows':
      return { leaves: leavesOf(task) };
    case 'open':
      return { rows: rowsOf(task) };
    case 'memory':
      return walkMemory(task);
    case 'disk':
      return walkDisk(task);
  }
}

function leavesOf({ seed, n, from, to }: RowsTask): Uint8Array[] {
  const b = matrixRows(seed, 'B', { n, from: 0, to: n });
  const leaves: Uint8Array[] = [];
  for (let first = from; first < to; first += ROWS_AT_ONCE) {
    const last = Math.min(first + ROWS_AT_ONCE, to);
    const a = matrixRows(seed, 'A', { n, from: first, to: last });
    for (let index = first; index < last; index += 1) {
      const aRow = a.subarray((index - first) * n, (index - first + 1) * n);
      leaves.push(leafHash(index, rowBytes(productRow(aRow, b))));
    }
  }
  return leaves;
}

/** Made again from the seed: only their hashes were kept. */
function rowsOf({ seed, n, indices }: OpenTask): Uint8Array[] {
  const b = matrixRows(seed, 'B', { n, from: 0, to: n });
  return indices.map((index) => {
    const aRow = matrixRows(seed, 'A', { n, from: index, to: index + 1 });
    return rowBytes(productRow(aRow, b));
  });
}

async function walkMemory({ seed, walk: asked }: WalkTask): Promise<Walked> {
  const { blockBytes, blocks } = asked;
  const beganMs = systemClock.monotonicMs();
  const memory = Buffer.alloc(blocks * blockBytes);
  for (const { from, count } of portions(asked)) {
    filledBlocks(seed, asked, { from, count }).copy(memory, from * blockBytes);
  }
  const filledMs = systemClock.monotonicMs();
  const digest = await walk(seed, asked, (index) =>
    memory.subarray(index * blockBytes, (index + 1) * blockBytes),
  );
  return timed(digest, beganMs, filledMs);
}

async function walkDisk(task: WalkTask & { path: string }): Promise<Walked> {
  const { seed, walk: asked, path } = task;
  const { blockBytes } = asked;
  const beganMs = systemClock.monotonicMs();
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  // Of a run that was cut off.
  await rm(path, { force: true });
  const file = await open(path, 'wx+', 0o600);
  try {
    for (const { from, count } of portions(asked)) {
      await file.write(filledBlocks(seed, asked, { from, count }));
    }
    await file.sync();
    const filledMs = systemClock.monotonicMs();
    const block = Buffer.alloc(blockBytes);
    const digest = await walk(seed, asked, async (index) => {
      await file.read(block, 0, blockBytes, index * blockBytes);
      return block;
    });
    return timed(digest, beganMs, filledMs);
  } finally {
    await file.close();
    await rm(path, { force: true });
  }
}

function* portions({ blockBytes, blocks }: Walk): Generator<{ from: number; count: number }> {
  const step = Math.max(1, Math.floor(FILL_BYTES / blockBytes));
  for (let from = 0; from < blocks; from += step) {
    yield { from, count: Math.min(step, blocks - from) };
  }
}

function timed(digest: Uint8Array, beganMs: number, filledMs: number): Walked {
  return { digest, fillMs: filledMs - beganMs, walkMs: systemClock.monotonicMs() - filledMs };
}
