/** Xids: the errors that NVIDIA's driver writes to the kernel log. Pure. */
import type { ObservedCard, XidRow } from './gpu-health.store.ts';

export type KernelRecord = {
  sequence: number;
  /** Milliseconds since the host booted. */
  uptimeMs: number;
  text: string;
};
export type Xid = { sequence: number; uptimeMs: number; pci: string; code: number };

/** Xids after which a card is unusable or unreliable until the host is rebooted. */
export const CORDONING_XIDS: ReadonlySet<number> = new Set([48, 62, 64, 74, 79, 95, 119, 120]);

const MICROSECONDS_PER_MS = 1_000;
/** `prefix,sequence,microseconds,flags[,…];text`; only records of the kernel itself have a prefix of one digit. */
const RECORD = /^[0-7],(\d{1,15}),(\d{1,18}),[^;]*;(.*)$/;
const XID = /NVRM: Xid \(PCI:([0-9a-fA-F:.]{7,20})(?: [^)]{0,40})?\): (\d{1,5})\b/;

/** Parses a line of /dev/kmsg; null unless the kernel itself wrote it. */
export function parseKernelRecord(line: string): KernelRecord | null {
  const [, sequence, microseconds, text] = RECORD.exec(line) ?? [];
  if (sequence === undefined || microseconds === undefined || text === undefined) return null;
  const uptimeMs = Number(microseconds) / MICROSECONDS_PER_MS;
  return { sequence: Number(sequence), uptimeMs, text };
}

/** Returns null for a record without an Xid. */
export function xidOf({ sequence, uptimeMs, text }: KernelRecord): Xid | null {
  const [, address, code] = XID.exec(text) ?? [];
  const pci = pciKey(address ?? null);
  return pci === '' || code === undefined ? null : { sequence, uptimeMs, pci, code: Number(code) };
}

/**
 * Normalizes a PCI address: `00000000:1B:00.0` (nvidia-smi) and `0000:1b:00` (kernel) -> `0000:1b:00`.
 * Empty if the text is not an address.
 */
export function pciKey(address: string | null): string {
  const match = /^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.[0-7])?$/i.exec(
    address?.trim() ?? '',
  );
  if (match === null) return '';
  const [, domain = '0', bus = '', device = ''] = match;
  const number = Number.parseInt(domain, 16).toString(16).padStart(4, '0');
  return `${number}:${bus}:${device}`.toLowerCase();
}

export type CountedXid = { uuid: string; code: number; count: number; lastMs: number };

/** Counts Xids by card and code. Rows name a card by PCI address; unknown addresses are skipped. */
export function countXids(rows: readonly XidRow[], cards: readonly ObservedCard[]): CountedXid[] {
  const uuids = new Map(cards.map(({ pci, uuid }) => [pci, uuid]));
  const counted = new Map<string, CountedXid>();
  for (const { pci, code, at_ms: atMs } of rows) {
    const uuid = uuids.get(pci);
    if (uuid === undefined) continue;
    const key = `${uuid} ${code}`;
    const before = counted.get(key);
    counted.set(key, {
      uuid,
      code,
      count: (before?.count ?? 0) + 1,
      lastMs: Math.max(before?.lastMs ?? 0, atMs),
    });
  }
  return [...counted.values()];
}
