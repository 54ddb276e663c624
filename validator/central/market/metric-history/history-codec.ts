/** Stored form of the history: columns of codes, compressed. */
import { promisify } from 'node:util';
import { brotliCompress, brotliDecompress, constants } from 'node:zlib';
import { z } from 'zod';
import { columnsFor, SUMMARY_COLUMNS } from './figures.ts';
import type { Archive, Recent } from './retained.ts';
import { rowsFrom, type Tier } from './tier.ts';

/**
 * Maximum stored size of each part. A series that compresses badly loses the figures of single GPUs, oldest first,
 * and then its oldest rows.
 */
export const MAX_RECENT_BYTES = 28_000;
export const MAX_ARCHIVE_BYTES = 160_000;
/** Share of the rows that one step reduces. Steps repeat until the part fits. */
const DROPPED = 1 / 8;
/** Compression level. Higher levels take many times as long and save a few percent. */
const QUALITY = 5;
const MAX_PLAIN_BYTES = 16 * 1024 * 1024;

const VERSION = 1;
/** Length of the header. */
const PREFIX_BYTES = 4;

const Header = z.object({
  version: z.literal(VERSION),
  gpus: z.array(z.string()),
  /** Number of rows of each tier, and the `at` of its first row. */
  tiers: z.array(z.object({ rows: z.int().min(0), first: z.int() })),
});
type Stored = { gpus: readonly string[]; tiers: readonly Tier[] };

const compress = promisify(brotliCompress);
const decompress = promisify(brotliDecompress);

export async function encodeRecent(recent: Recent): Promise<Uint8Array> {
  for (let kept = recent; ; kept = withLess(kept)) {
    const { gpus, samples, minutes, tens } = kept;
    const bytes = await encode({ gpus, tiers: [samples, minutes, tens] });
    if (bytes.length <= MAX_RECENT_BYTES) return bytes;
  }
}

export async function encodeArchive(archive: Archive): Promise<Uint8Array> {
  for (let { tens } = archive; ; tens = reduced(tens)) {
    const bytes = await encode({ gpus: archive.gpus, tiers: [tens] });
    if (bytes.length <= MAX_ARCHIVE_BYTES) return bytes;
  }
}

/** Throws if the bytes were not written by `encodeRecent`. */
export async function decodeRecent(bytes: Uint8Array): Promise<Recent> {
  const { gpus, tiers } = await decode(bytes);
  const [samples, minutes, tens] = tiers;
  if (samples === undefined || minutes === undefined || tens === undefined) throw damaged();
  return { gpus, samples, minutes, tens };
}

/** Throws if the bytes were not written by `encodeArchive`. */
export async function decodeArchive(bytes: Uint8Array): Promise<Archive> {
  const { gpus, tiers } = await decode(bytes);
  const [tens] = tiers;
  if (tens === undefined) throw damaged();
  return { gpus, tens };
}

/** Drops data from rows. Ten-minute rows are reduced last, because the archive still needs them. */
function withLess(recent: Recent): Recent {
  const { samples, minutes, tens } = recent;
  if (samples.at.length + minutes.at.length === 0) return { ...recent, tens: reduced(tens) };
  return { ...recent, samples: reduced(samples), minutes: reduced(minutes) };
}

/** Drops the figures of single GPUs from the oldest rows that have them. If no row has them, drops the oldest rows. */
function reduced(tier: Tier): Tier {
  const { at, cells } = tier;
  const count = Math.ceil(at.length * DROPPED);
  const ofGpus = cells.slice(SUMMARY_COLUMNS);
  const first = at.findIndex((_, row) => ofGpus.some((column) => column[row] !== 0));
  if (first === -1) return rowsFrom(tier, at[count] ?? Number.POSITIVE_INFINITY);
  const forgotten = ofGpus.map((column) =>
    column.map((code, row) => (row < first + count ? 0 : code)),
  );
  return { ...tier, cells: [...cells.slice(0, SUMMARY_COLUMNS), ...forgotten] };
}

function damaged(): Error {
  return new Error('the stored history of metrics is damaged');
}

function encode({ gpus, tiers }: Stored): Promise<Uint8Array> {
  const header = Buffer.from(
    JSON.stringify({
      version: VERSION,
      gpus,
      tiers: tiers.map(({ at }) => ({ rows: at.length, first: at[0] ?? 0 })),
    }),
  );
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32LE(header.length);
  const columns = tiers.flatMap((tier) => [
    encodeColumn(tier.at.map((at) => at - (tier.at[0] ?? 0))),
    encodeColumn(tier.samples),
    ...tier.cells.map(encodeColumn),
  ]);
  const plain = Buffer.concat([prefix, header, ...columns]);
  return compress(plain, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: QUALITY,
      [constants.BROTLI_PARAM_SIZE_HINT]: plain.length,
    },
  });
}

async function decode(bytes: Uint8Array): Promise<{ gpus: string[]; tiers: Tier[] }> {
  const plain = await decompress(bytes, { maxOutputLength: MAX_PLAIN_BYTES });
  const begin = PREFIX_BYTES + plain.readUInt32LE();
  const header = Header.parse(JSON.parse(plain.toString('utf8', PREFIX_BYTES, begin)));
  let offset = begin;
  function next(rows: number): number[] {
    const column = decodeColumn(plain, offset, rows);
    offset += columnBytes(rows);
    return column;
  }
  const { gpus } = header;
  const tiers = header.tiers.map(({ rows, first }) => ({
    at: next(rows).map((at) => first + at),
    samples: next(rows),
    cells: columnsFor(gpus.length).map(() => next(rows)),
  }));
  if (offset !== plain.length) throw damaged();
  return { gpus, tiers };
}

/** First byte of a column: whether the column contains codes, or differences between rows. */
const PLAIN = 0;
const DIFFERENCES = 1;

function columnBytes(rows: number): number {
  return 1 + 2 * rows;
}

/**
 * Encodes a column. Slowly changing columns are stored as differences, noisy columns unchanged. Low and high bytes are
 * separate, because the high bytes hardly vary.
 */
function encodeColumn(codes: readonly number[]): Buffer {
  const rows = codes.length;
  const plain = Int32Array.from(codes);
  // Replaces each code by its difference from the previous code, starting at the end.
  const differences = Int32Array.from(codes);
  for (let row = rows - 1; row > 0; row -= 1) {
    differences[row] = (plain[row] ?? 0) - (plain[row - 1] ?? 0);
  }
  const isSteady = spread(differences) < spread(plain);
  const bytes = Buffer.alloc(columnBytes(rows));
  bytes[0] = isSteady ? DIFFERENCES : PLAIN;
  for (let row = 0; row < rows; row += 1) {
    const difference = differences[row] ?? 0;
    const value = isSteady ? (difference << 1) ^ (difference >> 31) : (plain[row] ?? 0);
    bytes[1 + row] = value & 0xff;
    bytes[1 + rows + row] = value >> 8;
  }
  return bytes;
}

/** Sum of the distances from the mean. */
function spread(values: Int32Array): number {
  let sum = 0;
  for (const value of values) sum += value;
  const mean = sum / values.length;
  let distance = 0;
  for (const value of values) distance += Math.abs(value - mean);
  return distance;
}

function decodeColumn(bytes: Buffer, offset: number, rows: number): number[] {
  const codes: number[] = [];
  const isSteady = bytes[offset] === DIFFERENCES;
  let last = 0;
  for (let row = 0; row < rows; row += 1) {
    const low = bytes[offset + 1 + row] ?? 0;
    const value = low | ((bytes[offset + 1 + rows + row] ?? 0) << 8);
    last = isSteady ? last + ((value >>> 1) ^ -(value & 1)) : value;
    codes.push(last);
  }
  return codes;
}
