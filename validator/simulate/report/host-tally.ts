/**
 * Hosts as they really are: cheats, and the time in which faults kept them from working. Compared with the verdicts of
 * the validator, this shows what it finds, how late, and whom it suspects wrongly. Pure except for its own counters.
 */
import { CHECK_EVENT } from '../world/check-event.ts';
import type { JournalEvent } from '../world/journal.ts';

export type KnownHost = {
  executor: string;
  gpu: string;
  gpus: number;
  region: string;
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
  /** Number of checks that failed while a fault of the host lasted, or shortly after it. */
  failedInFault: number;
  /** Failed checks that only a fault of a service explains, by the fault and the reason. */
  serviceReasons: Map<string, number>;
  /** Time and reason of the first failed check that no fault explains; null before it. */
  found: { atMs: number; reason: string } | null;
  /** End of the last fault; null before the first. */
  faultEndedMs: number | null;
  /** Reasons of failed checks that no fault explains. */
  reasons: Map<string, number>;
};

export type HostTally = {
  record(event: JournalEvent, atMs: number): void;
  hosts(): IterableIterator<KnownHost>;
  get(executor: string): KnownHost | undefined;
};

/** Faults during which the host does not do what it offers. Slow starts are not among them. */
const HARMFUL = new Set(['flap', 'dies', 'card', 'region', 'leave']);
const FAULT = /^fault-(.+)$/;
const HOUR_MS = 3_600_000;
/** Time after a fault in which a failed check still counts as its consequence: until the next inspection. */
const AFTERMATH_MS = 6 * HOUR_MS;
/** Faults of services that checks of hosts depend on. Payments are not among them. */
const SERVICES = new Set(['central', 'validator', 'registry', 'clock']);
/** The same time after a fault of a service: until the inspections that it met have ended. */
const SERVICE_AFTERMATH_MS = HOUR_MS;

export function createHostTally(): HostTally {
  const hosts = new Map<string, KnownHost>();
  const services = createServiceTally();

  function add(event: JournalEvent, executor: string, atMs: number): void {
    hosts.set(executor, {
      executor,
      gpu: String(event['gpu'] ?? ''),
      gpus: Number(event['gpus'] ?? 0),
      region: String(event['region'] ?? ''),
      cheat: typeof event['cheat'] === 'string' ? event['cheat'] : null,
      selfAccount: null,
      sinceMs: atMs,
      faults: 0,
      faultSinceMs: 0,
      faultyMs: 0,
      checks: 0,
      failedInFault: 0,
      serviceReasons: new Map(),
      found: null,
      faultEndedMs: null,
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
    const isAftermath = atMs - (host.faultEndedMs ?? Number.NEGATIVE_INFINITY) <= AFTERMATH_MS;
    if (host.faults > 0 || isAftermath) {
      host.failedInFault += 1;
      return;
    }
    const service = services.faultAt(atMs);
    if (service !== null) {
      increment(host.serviceReasons, `${service}: ${reason}`);
      return;
    }
    host.found ??= { atMs, reason };
    increment(host.reasons, reason);
  }

  return {
    record(event, atMs) {
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
        services.endAll(atMs);
        for (const host of hosts.values()) endAllFaults(host, atMs);
        return;
      }
      const fault = FAULT.exec(event.kind)?.[1] ?? null;
      const repaired = event.kind === 'repair' ? String(event['fault'] ?? '') : null;
      const kind = fault ?? repaired ?? '';
      if (SERVICES.has(kind)) services.record(kind, fault !== null, atMs);
      if (!HARMFUL.has(kind)) return;
      for (const host of concerned(event)) {
        if (fault !== null) beginFault(host, atMs);
        else endFault(host, atMs);
      }
    },
    hosts: () => hosts.values(),
    get: (executor) => hosts.get(executor),
  };
}

/** Faults of services that last or have just ended. */
function createServiceTally() {
  const faults = new Map<string, { present: number; endedMs: number }>();
  return {
    record(kind: string, begins: boolean, atMs: number): void {
      const { present = 0 } = faults.get(kind) ?? {};
      // A jump of the clock is over at once.
      const change = kind === 'clock' ? 0 : begins ? 1 : -1;
      faults.set(kind, { present: Math.max(0, present + change), endedMs: atMs });
    },
    endAll(atMs: number): void {
      for (const [kind, { present }] of faults) {
        if (present > 0) faults.set(kind, { present: 0, endedMs: atMs });
      }
    },
    /** Returns a fault that explains failed checks at this time; null if there is none. */
    faultAt(atMs: number): string | null {
      for (const [kind, { present, endedMs }] of faults) {
        if (present > 0 || atMs - endedMs <= SERVICE_AFTERMATH_MS) return kind;
      }
      return null;
    },
  };
}

const increment = (counts: Map<string, number>, key: string): void =>
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
  host.faultEndedMs = atMs;
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
