/**
 * Hosts as they really are: cheats, and the time in which faults kept them from working. Compared with the verdicts of
 * the validator, this shows what it finds, how late, and whom it suspects wrongly. Pure except for its own counters.
 */
import { CHECK_EVENT } from '../world/check-event.ts';
import type { JournalEvent } from '../world/journal.ts';
import { createFaultTally, HARMFUL, type KnownFault, SERVICES } from './fault-tally.ts';

export type KnownHost = {
  executor: string;
  /** Name of its provider, which has one host. */
  name: string;
  gpu: string;
  gpus: number;
  region: string;
  /** Strategy of the provider for its prices. */
  strategy: string;
  /** Id of the cheat; null for an honest host. */
  cheat: string | null;
  /** Account from which the provider rents its own host; null if it does not. */
  selfAccount: string | null;
  sinceMs: number;
  /** Number of its faults that last at present, and the start of the first of them. */
  faults: number;
  faultSinceMs: number;
  faultyMs: number;
  checks: number;
  /** Checks that failed while a fault of the host lasted, or shortly after it, by the kind of the fault. */
  faultReasons: Map<string, number>;
  /** Failed checks that only a fault of a service explains, by the fault and the reason. */
  serviceReasons: Map<string, number>;
  /** Time and reason of the first failed check that no fault explains; null before it. */
  found: { atMs: number; reason: string } | null;
  /** Reasons of failed checks that no fault explains. */
  reasons: Map<string, number>;
};

export type HostTally = {
  record(event: JournalEvent, atMs: number): void;
  hosts(): IterableIterator<KnownHost>;
  get(executor: string): KnownHost | undefined;
  /** Oldest first. */
  faults(): readonly KnownFault[];
  /** Failed checks that each fault explains. */
  failedChecks(): ReadonlyMap<KnownFault, number>;
};

const FAULT = /^fault-(.+)$/;

export function createHostTally(): HostTally {
  const hosts = new Map<string, KnownHost>();
  const faults = createFaultTally();
  const failedChecks = new Map<KnownFault, number>();

  function add(event: JournalEvent, executor: string, atMs: number): void {
    hosts.set(executor, {
      executor,
      name: event.actor ?? executor,
      gpu: String(event['gpu'] ?? ''),
      gpus: Number(event['gpus'] ?? 0),
      region: String(event['region'] ?? ''),
      strategy: String(event['strategy'] ?? ''),
      cheat: typeof event['cheat'] === 'string' ? event['cheat'] : null,
      selfAccount: null,
      sinceMs: atMs,
      faults: 0,
      faultSinceMs: 0,
      faultyMs: 0,
      checks: 0,
      faultReasons: new Map(),
      serviceReasons: new Map(),
      found: null,
      reasons: new Map(),
    });
  }

  /** Hosts that a fault or a repair concerns: one host, or all of a region. */
  function concerned({ executor, ...event }: JournalEvent): KnownHost[] {
    const one = hosts.get(executor ?? '');
    if (one !== undefined) return [one];
    const region = event['region'];
    return typeof region === 'string'
      ? [...hosts.values()].filter((host) => host.region === region)
      : [];
  }

  function checked(event: JournalEvent, atMs: number): void {
    const host = hosts.get(event.executor ?? '');
    if (host === undefined) return;
    host.checks += 1;
    if (event['verdict'] !== 'failed') return;
    const reason = String(event['reason'] ?? '');
    const fault = faults.explain(host.executor, atMs);
    if (fault !== null) {
      increment(failedChecks, fault);
      if (SERVICES.has(fault.kind)) increment(host.serviceReasons, `${fault.kind}: ${reason}`);
      else increment(host.faultReasons, fault.kind);
      return;
    }
    host.found ??= { atMs, reason };
    increment(host.reasons, reason);
  }

  return {
    record(event, atMs) {
      faults.record(event, atMs);
      if (event.kind === CHECK_EVENT) return checked(event, atMs);
      if (event.kind === 'node-added' && event.executor !== undefined) {
        return add(event, event.executor, atMs);
      }
      if (event.kind === 'self-renter') {
        const host = hosts.get(event.executor ?? '');
        if (host !== undefined) host.selfAccount = String(event['account']);
        return;
      }
      if (event.kind === 'faults-end') {
        for (const host of hosts.values()) endAllFaults(host, atMs);
        return;
      }
      const fault = FAULT.exec(event.kind)?.[1] ?? null;
      const repaired = event.kind === 'repair' ? String(event['fault'] ?? '') : null;
      const kind = fault ?? repaired ?? '';
      if (!HARMFUL.has(kind)) return;
      for (const host of concerned(event)) {
        if (fault !== null) beginFault(host, atMs);
        else endFault(host, atMs);
      }
    },
    hosts: () => hosts.values(),
    get: (executor) => hosts.get(executor),
    faults: faults.list,
    failedChecks: () => failedChecks,
  };
}

const increment = <Key>(counts: Map<Key, number>, key: Key): void =>
  void counts.set(key, (counts.get(key) ?? 0) + 1);

function beginFault(host: KnownHost, atMs: number): void {
  if (host.faults === 0) host.faultSinceMs = atMs;
  host.faults += 1;
}

function endFault(host: KnownHost, atMs: number): void {
  if (host.faults === 0) return;
  host.faults -= 1;
  if (host.faults > 0) return;
  host.faultyMs += atMs - host.faultSinceMs;
}

function endAllFaults(host: KnownHost, atMs: number): void {
  host.faults = Math.min(host.faults, 1);
  endFault(host, atMs);
}

/** Returns the share of its time in which the host did what it offers, in [0, 1]; 0 for a host that cheats. */
export function qualityOf(host: KnownHost, nowMs: number): number {
  if (host.cheat !== null) return 0;
  const total = nowMs - host.sinceMs;
  const present = host.faults > 0 ? nowMs - host.faultSinceMs : 0;
  return total <= 0 ? 1 : 1 - (host.faultyMs + present) / total;
}
