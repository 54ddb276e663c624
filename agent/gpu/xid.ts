import type { SeenCard, XidRow } from './gpu-health.store.ts';

/** Xids, the errors that NVIDIA's driver writes to the kernel's log (agent reference 9). Pure. */

export type KernelRecord = {
  sequence: number;
  /** Since the host booted. */
  uptimeMs: number;
  text: string;
};
export type Xid = { sequence: number; uptimeMs: number; pci: string; code: number };

/** Those after which a card does not work on, or not to be trusted, until the host is rebooted. */
export const CORDONING_XIDS: ReadonlySet<number> = new Set([48, 62, 64, 74, 79, 95, 119, 120]);

const MICROSECONDS_PER_MS = 1_000;
/** `prefix,sequence,microseconds,flags[,…];text`; a prefix of one digit is the kernel's own, others are programs'. */
const RECORD = /^[0-7],(\d{1,15}),(\d{1,18}),[^;]*;(.*)$/;
const XID = /NVRM: Xid \(PCI:([0-9a-fA-F:.]{7,20})(?: [^)]{0,40})?\): (\d{1,5})\b/;

/** A record that the kernel itself wrote, from its line of /dev/kmsg; null for any other line. */
export function parseKernelRecord(line: string): KernelRecord | null {
  const [, sequence, microseconds, text] = RECORD.exec(line) ?? [];
  if (sequence === undefined || microseconds === undefined || text === undefined) return null;
  const uptimeMs = Number(microseconds) / MICROSECONDS_PER_MS;
  return { sequence: Number(sequence), uptimeMs, text };
}

/** Null for a record of something else. */
export function xidOf({ sequence, uptimeMs, text }: KernelRecord): Xid | null {
  const [, address, code] = XID.exec(text) ?? [];
  const pci = pciKey(address ?? null);
  return pci === '' || code === undefined ? null : { sequence, uptimeMs, pci, code: Number(code) };
}

/**
 * `00000000:1B:00.0` as nvidia-smi writes it and `0000:1b:00` as the kernel does -> `0000:1b:00`.
 * Empty for what is no address.
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

// MERGED agent/gpu/xid.ts: Xids by card and code, out of the store's rows. Pure.
export type CountedXid = { uuid: string; code: number; count: number; lastMs: number };

/** Those of cards that were seen on this host; a row names a card by its place on the bus. */
export function countXids(rows: readonly XidRow[], cards: readonly SeenCard[]): CountedXid[] {
  const uuids = new Map(cards.map(({ pci, uuid }) => [pci, uuid]));
  const counted = new Map<string, CountedXid>();
  for (const { pci, code, at_ms: atMs } of rows) {
    const uuid = uuids.get(pci);
    if (uuid === undefined) continue;
    const key = `${uuid} ${code}`;
    const before = counted.get(key);
    counted.set(key, {
      ...{ uuid, code },
      count: (before?.count ?? 0) + 1,
      lastMs: Math.max(before?.lastMs ?? 0, atMs),
    });
  }
  return [...counted.values()];
}
