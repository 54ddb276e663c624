/** The faults of a run with the hosts that they hit, and the failed checks that they explain. Pure except for its own list. */
import type { JournalEvent } from '../world/journal.ts';

export type KnownFault = {
  kind: string;
  /** Region that was cut off; null for other faults. */
  region: string | null;
  /** Hosts that the fault hit; empty for a fault of a service. */
  executors: readonly string[];
  fromMs: number;
  /** Null while the fault lasts. */
  toMs: number | null;
  /** Time by which the wall clock was ahead when the fault began: the central API's times are of the wall clock. */
  wallAheadMs: number;
};

export type FaultTally = {
  record(event: JournalEvent, atMs: number): void;
  /** Returns the fault that explains a failed check of a host at this time; null if there is none. */
  explain(executor: string, atMs: number): KnownFault | null;
  /** Oldest first. */
  list(): readonly KnownFault[];
};

const FAULT = /^fault-(.+)$/;
const HOUR_MS = 3_600_000;
/** Faults during which the host does not do what it offers. Slow starts are not among them. */
export const HARMFUL: ReadonlySet<string> = new Set(['flap', 'dies', 'card', 'region', 'leave']);
/** Time after a fault in which a failed check still counts as its consequence: until the next inspection. */
const AFTERMATH_MS = 6 * HOUR_MS;
/** Faults of services that checks of hosts depend on. Payments are not among them. */
export const SERVICES: ReadonlySet<string> = new Set(['central', 'validator', 'registry', 'clock']);
/** The same time after a fault of a service: until the inspections that it met have ended. */
const SERVICE_AFTERMATH_MS = HOUR_MS;
const SECOND_MS = 1_000;
/** Jumps of the clock are over at once. */
const JUMP = 'clock';
/** Each host that leaves has an event; hosts that leave at the same time are one fault. */
const LEAVE = 'leave';

export function createFaultTally(): FaultTally {
  const faults: KnownFault[] = [];
  /** Faults that last, in the order of their beginning. */
  let present: KnownFault[] = [];
  /** Harmful faults by host. */
  const ofHosts = new Map<string, KnownFault[]>();
  const ofServices: KnownFault[] = [];
  /** Hosts by region. */
  const regions = new Map<string, string[]>();
  let wallAheadMs = 0;

  function hit({ executor, region }: JournalEvent): string[] {
    if (executor !== undefined) return [executor];
    return typeof region === 'string' ? [...(regions.get(region) ?? [])] : [];
  }

  /** Makes the fault known as the reason of failed checks. */
  function index(fault: KnownFault, executors: readonly string[]): void {
    if (SERVICES.has(fault.kind)) ofServices.push(fault);
    if (!HARMFUL.has(fault.kind)) return;
    for (const executor of executors) {
      const own = ofHosts.get(executor) ?? [];
      ofHosts.set(executor, own);
      own.push(fault);
    }
  }

  function begin(kind: string, event: JournalEvent, atMs: number): void {
    const executors = hit(event);
    const last = faults.at(-1);
    if (kind === LEAVE && last?.kind === LEAVE && last.fromMs === atMs) {
      last.executors = [...last.executors, ...executors];
      index(last, executors);
      return;
    }
    if (kind === JUMP && typeof event['by_s'] === 'number') {
      wallAheadMs += event['by_s'] * SECOND_MS;
    }
    const fault: KnownFault = {
      kind,
      region: typeof event['region'] === 'string' ? event['region'] : null,
      executors,
      fromMs: atMs,
      toMs: kind === JUMP ? atMs : null,
      wallAheadMs,
    };
    faults.push(fault);
    index(fault, executors);
    if (fault.toMs === null) present.push(fault);
  }

  function end({ fault, executor, region }: JournalEvent, atMs: number): void {
    const ended = present.find(
      (each) =>
        each.kind === fault &&
        each.region === (typeof region === 'string' ? region : null) &&
        (executor === undefined || each.executors.includes(executor)),
    );
    if (ended === undefined) return;
    ended.toMs = atMs;
    present = present.filter((each) => each !== ended);
  }

  return {
    record(event, atMs) {
      const kind = FAULT.exec(event.kind)?.[1];
      if (kind !== undefined) begin(kind, event, atMs);
      else if (event.kind === 'repair') end(event, atMs);
      else if (event.kind === 'faults-end') {
        for (const fault of present) fault.toMs = atMs;
        present = [];
      } else if (event.kind === 'node-added' && event.executor !== undefined) {
        const region = String(event['region'] ?? '');
        const hosts = regions.get(region) ?? [];
        regions.set(region, hosts);
        hosts.push(event.executor);
      }
    },
    explain(executor, atMs) {
      const own = ofHosts.get(executor) ?? [];
      const isExplainedWithin = (ms: number) => (fault: KnownFault) =>
        fault.toMs === null || atMs - fault.toMs <= ms;
      return (
        own.findLast(({ toMs }) => toMs === null) ??
        own.findLast(isExplainedWithin(AFTERMATH_MS)) ??
        ofServices.findLast(isExplainedWithin(SERVICE_AFTERMATH_MS)) ??
        null
      );
    },
    list: () => faults,
  };
}
