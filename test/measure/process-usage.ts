/** Memory and processor time of other processes, from /proc. */
import { readFileSync } from 'node:fs';

const BYTES_PER_KB = 1024;
const BYTES_PER_MB = 1_000_000;
/** Unit of processor times. */
const TICKS_PER_SECOND = 100;

/** Resident memory in units of 10^6 bytes. */
export function residentMb(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kilobytes = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
  return (kilobytes * BYTES_PER_KB) / BYTES_PER_MB;
}

/** Seconds of processor time so far, in user and kernel mode. */
export function cpuSeconds(pid: number | undefined): number {
  // The name of the program is in brackets and may contain spaces.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
