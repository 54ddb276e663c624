/** The work of a challenge itself, as a worker thread does it. */
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { leafHash } from '#shared/proof-of-work/merkle.ts';
import { matrixRows, productRow, rowBytes } from '#shared/proof-of-work/product.ts';
import { filledBlocks, type Walk, walk } from '#shared/proof-of-work/walk.ts';
import { systemClock } from '#shared/runtime/clock.ts';

/** Rows of A that are made at a time. */
const ROWS_AT_ONCE = 16;
/** Filled at a time. */
const FILL_BYTES = 4 * 1024 * 1024;
const WASM_PAGE_BYTES = 65_536;

export type RowsTask = { kind: 'rows'; seed: Uint8Array; n: number; from: number; to: number };
export type OpenTask = { kind: 'open'; seed: Uint8Array; n: number; indices: readonly number[] };
export type WalkTask = { seed: Uint8Array; walk: Walk };
export type ProofTask =
  | RowsTask
  | OpenTask
  | ({ kind: 'memory' } & WalkTask)
  /** In a new file at `path`, which whoever gave the task removes: a thread may be ended at any point. */
  | ({ kind: 'disk'; path: string } & WalkTask);

/** `direct`: past the cache of files, so that the disk itself answered. */
export type Walked = { digest: Uint8Array; fillMs: number; walkMs: number; direct: boolean };
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
  return { digest, ...timed(beganMs, filledMs), direct: false };
}

async function walkDisk(task: WalkTask & { path: string }): Promise<Walked> {
  const { seed, walk: asked, path } = task;
  const { blockBytes } = asked;
  const beganMs = systemClock.monotonicMs();
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await fill(task);
  const filledMs = systemClock.monotonicMs();
  const block = pageAligned(blockBytes);
  const { file, direct } = await openForReading(path, block);
  try {
    const digest = await walk(seed, asked, async (index) => {
      await file.read(block, 0, blockBytes, index * blockBytes);
      return block;
    });
    return { digest, ...timed(beganMs, filledMs), direct };
  } finally {
    await file.close();
  }
}

async function fill({ seed, walk: asked, path }: WalkTask & { path: string }): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    for (const { from, count } of portions(asked)) {
      await file.write(filledBlocks(seed, asked, { from, count }));
    }
    // What is not on the disk yet cannot be read from it.
    await file.sync();
  } finally {
    await file.close();
  }
}

/** O_DIRECT where file system and block size allow it, which only a read tells. */
async function openForReading(
  path: string,
  block: Uint8Array,
): Promise<{ file: FileHandle; direct: boolean }> {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_DIRECT);
    try {
      await file.read(block, 0, block.length, 0);
      return { file, direct: true };
    } catch (error) {
      await file.close();
      throw error;
    }
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EINVAL')) throw error;
    return { file: await open(path, 'r'), direct: false };
  }
}

/** As much of it as is needed here; Node has all. */
declare const WebAssembly: {
  Memory: new (pages: { initial: number }) => { buffer: ArrayBuffer };
};

/** O_DIRECT takes no other memory; that of WebAssembly begins at a page, other buffers anywhere. */
function pageAligned(bytes: number): Buffer {
  const { buffer } = new WebAssembly.Memory({ initial: Math.ceil(bytes / WASM_PAGE_BYTES) });
  return Buffer.from(buffer, 0, bytes);
}

function* portions({ blockBytes, blocks }: Walk): Generator<{ from: number; count: number }> {
  const step = Math.max(1, Math.floor(FILL_BYTES / blockBytes));
  for (let from = 0; from < blocks; from += step) {
    yield { from, count: Math.min(step, blocks - from) };
  }
}

function timed(beganMs: number, filledMs: number) {
  return { fillMs: filledMs - beganMs, walkMs: systemClock.monotonicMs() - filledMs };
}
