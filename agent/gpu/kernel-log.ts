/** The kernel's log as records, oldest first, read in bounded helpings that never wait. */
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { type KernelRecord, parseKernelRecord } from './xid.ts';

export type KernelLog = {
  /** The records since the last call; empty when there are none now. Throws when the log cannot be read. */
  read(): KernelRecord[];
  close(): void;
};

export const KERNEL_LOG_PATH = '/dev/kmsg';
/** The kernel gives one record per read and none longer than this. */
const CHUNK_BYTES = 8_192;
/** A log that is written without end is read on in the next call. */
const MAX_READS = 5_000;
/** A line that does not end is no record. */
const MAX_LINE_CHARS = 16_384;

/** Opened at the first read. A pipe is read as far as it is filled, whether or not anybody writes. A plain file is read to its end, and on from there as it grows. */
export function createKernelLog(path: string): KernelLog {
  const buffer = Buffer.alloc(CHUNK_BYTES);
  let descriptor: number | null = null;
  let begun = '';

  /** Null when there is nothing more now. */
  function nextChunk(): string | null {
    descriptor ??= openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const length = readSync(descriptor, buffer, 0, CHUNK_BYTES, null);
      return length === 0 ? null : buffer.toString('utf8', 0, length);
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : '';
      if (code === 'EAGAIN') return null;
      // The next record was overwritten before it was read: the log goes on with the oldest that is left.
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
        const lines = (begun + chunk).split('\n');
        begun = (lines.pop() ?? '').slice(0, MAX_LINE_CHARS);
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
