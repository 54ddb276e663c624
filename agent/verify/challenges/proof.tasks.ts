/** The work of a challenge; runs in a worker thread. */
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { leafHash } from '#shared/proof-of-work/merkle.ts';
import { matrixRows, productRow, rowBytes } from '#shared/proof-of-work/product.ts';
import { filledBlocks, type Walk, walk } from '#shared/proof-of-work/walk.ts';
import { systemClock } from '#shared/runtime/clock.ts';

/** Rows of A computed at a time. */
const ROWS_AT_ONCE = 16;
/** Bytes filled at a time. */
const FILL_BYTES = 4 * 1024 * 1024;
const WASM_PAGE_BYTES = 65_536;

export type RowsTask = { kind: 'rows'; seed: Uint8Array; n: number; from: number; to: number };
export type OpenTask = { kind: 'open'; seed: Uint8Array; n: number; indices: readonly number[] };
export type WalkTask = { seed: Uint8Array; walk: Walk };
export type ProofTask =
  | RowsTask
  | OpenTask
  | ({ kind: 'memory' } & WalkTask)
  /** Uses a new file at `path`. The caller deletes it, because the thread may be terminated at any point. */
  | ({ kind: 'disk'; path: string } & WalkTask);

/** `direct`: read with O_DIRECT, so that the disk and not the page cache answered. */
export type Walked = { digest: Uint8Array; fillMs: number; walkMs: number; direct: boolean };
/** Leaf hashes, rows, or the result of a walk, by the task's kind. */
export type ProofResult = { leaves: Uint8Array[] } | { rows: Uint8Array[] } | Walked;

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

/** Recomputes rows from the seed, because only their hashes were retained. */
function rowsOf({ seed, n, indices }: OpenTask): Uint8Array[] {
  const b = matrixRows(seed, 'B', { n, from: 0, to: n });
  return indices.map((index) => {
    const aRow = matrixRows(seed, 'A', { n, from: index, to: index + 1 });
    return rowBytes(productRow(aRow, b));
  });
}

async function walkMemory({ seed, walk: parameters }: WalkTask): Promise<Walked> {
  const { blockBytes, blocks } = parameters;
  const beganMs = systemClock.monotonicMs();
  const memory = Buffer.alloc(blocks * blockBytes);
  for (const { from, count } of portions(parameters)) {
    filledBlocks(seed, parameters, { from, count }).copy(memory, from * blockBytes);
  }
  const filledMs = systemClock.monotonicMs();
  const digest = await walk(seed, parameters, (index) =>
    memory.subarray(index * blockBytes, (index + 1) * blockBytes),
  );
  return { digest, ...timed(beganMs, filledMs), direct: false };
}

async function walkDisk(task: WalkTask & { path: string }): Promise<Walked> {
  const { seed, walk: parameters, path } = task;
  const { blockBytes } = parameters;
  const beganMs = systemClock.monotonicMs();
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await fill(task);
  const filledMs = systemClock.monotonicMs();
  const block = pageAligned(blockBytes);
  const { file, direct } = await openForReading(path, block);
  try {
    const digest = await walk(seed, parameters, async (index) => {
      await file.read(block, 0, blockBytes, index * blockBytes);
      return block;
    });
    return { digest, ...timed(beganMs, filledMs), direct };
  } finally {
    await file.close();
  }
}

async function fill({ seed, walk: parameters, path }: WalkTask & { path: string }): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    for (const { from, count } of portions(parameters)) {
      await file.write(filledBlocks(seed, parameters, { from, count }));
    }
    // O_DIRECT reads only what has reached the disk.
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Opens with O_DIRECT if file system and block size allow it, which only a read shows. */
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

/** Node provides WebAssembly, but its types do not declare it. */
declare const WebAssembly: {
  Memory: new (pages: { initial: number }) => { buffer: ArrayBuffer };
};

/** O_DIRECT requires aligned memory. WebAssembly memory is page-aligned, other buffers are not. */
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
