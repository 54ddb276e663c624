/** Reads the kernel log as records, oldest first, in bounded batches and without blocking. */
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { type KernelRecord, parseKernelRecord } from './xid.ts';

export type KernelLog = {
  /** Returns the records since the last call. Throws if the log cannot be read. */
  read(): KernelRecord[];
  close(): void;
};

export const KERNEL_LOG_PATH = '/dev/kmsg';
/** The kernel returns one record per read, none longer than this. */
const CHUNK_BYTES = 8_192;
/** Maximum number of reads per call; the next call reads the rest. */
const MAX_READS = 5_000;
/** Maximum length of a line; longer ones are cut off. */
const MAX_LINE_CHARS = 16_384;

/** Opens the file at the first read. Pipes and plain files are read to their current end and continued from there. */
export function createKernelLog(path: string): KernelLog {
  const buffer = Buffer.alloc(CHUNK_BYTES);
  let descriptor: number | null = null;
  let partialLine = '';

  /** Returns null at the current end of the log. */
  function nextChunk(): string | null {
    descriptor ??= openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const length = readSync(descriptor, buffer, 0, CHUNK_BYTES, null);
      return length === 0 ? null : buffer.toString('utf8', 0, length);
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : '';
      if (code === 'EAGAIN') return null;
      // The next record was overwritten before it was read: continues with the oldest that is left.
      if (code === 'EPIPE') return '';
      throw error;
    }
  }

  return {
    read() {
      const records: KernelRecord[] = [];
      for (let count = 0; count < MAX_READS; count += 1) {
        const chunk = nextChunk();
        if (chunk === null) break;
        const lines = (partialLine + chunk).split('\n');
        partialLine = (lines.pop() ?? '').slice(0, MAX_LINE_CHARS);
        records.push(...lines.map(parseKernelRecord).filter((record) => record !== null));
      }
      return records;
    },
    close() {
      if (descriptor !== null) closeSync(descriptor);
      descriptor = null;
    },
  };
}
