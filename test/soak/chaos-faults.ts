/** Injects the faults of a plan, one after the other, and removes each. */
import { globSync, readFileSync } from 'node:fs';
import { systemClock } from '#shared/runtime/clock.ts';
import type { FaultKind, PlannedFault } from './chaos-plan.ts';
import type { Service } from './chaos-services.ts';
import type { ChaosWorld } from './chaos-world.ts';

const HOUR_MS = 3_600_000;
/** Differences of a wrong clock: wrong time zones, and a battery that has lost the date. */
const CLOCK_OFFSETS_MS = [HOUR_MS, -HOUR_MS, 40 * 24 * HOUR_MS];
const CLOCK_WRONG_MS = 25_000;
/** Time to wait for a process of restic, which runs only during an operation. */
const RESTIC_WITHIN_MS = 8_000;
const POLL_MS = 20;

/** A wrong clock of one service, in the time of the host. */
export type ClockFault = { service: string; offsetMs: number; fromMs: number; toMs: number };

export type FaultLog = {
  counts: Record<string, number>;
  /** Spans in which a fault was active, in monotonic time. */
  spans: { kind: string; fromMs: number; toMs: number }[];
  clocks: ClockFault[];
};

/** Injects faults until `untilMs` (monotonic). When it resolves, every service runs with the right clock. */
export async function injectFaults(
  world: ChaosWorld,
  faults: readonly PlannedFault[],
  { untilMs, signal, note }: { untilMs: number; signal: AbortSignal; note(line: string): void },
): Promise<FaultLog> {
  const log: FaultLog = { counts: {}, spans: [], clocks: [] };
  for (const fault of faults) {
    await systemClock.sleep(fault.pauseMs, signal);
    const fromMs = systemClock.monotonicMs();
    if (fromMs > untilMs) break;
    const what = await INJECT[fault.kind](world, fault, log);
    if (what === null) continue;
    const toMs = systemClock.monotonicMs();
    note(`fault: ${what}, ${Math.round(toMs - fromMs)} ms`);
    log.spans.push({ kind: fault.kind, fromMs, toMs });
    const name = what.replace(/ of \S+$|-\d$/, '');
    log.counts[name] = (log.counts[name] ?? 0) + 1;
  }
  return log;
}

/** Injects a fault and returns a description of the fault; null if there was no process to affect. */
type Inject = (world: ChaosWorld, fault: PlannedFault, log: FaultLog) => Promise<string | null>;

const INJECT: Record<FaultKind, Inject> = {
  central: ({ central }, fault) => killed(central, fault),
  validator: ({ validator }, fault) => killed(validator, fault),
  agent: ({ nodes }, fault) => killed(pick(nodes, fault.draw).agent, fault),
  ssh: ({ nodes }, fault) => killed(pick(nodes, fault.draw).ssh, fault),
  async engine({ own }, { downMs }) {
    await own.kill();
    await systemClock.sleep(downMs);
    await own.start();
    return 'kill engine';
  },
  async postgres({ postgres }, { downMs }) {
    await postgres.kill();
    await systemClock.sleep(downMs);
    await postgres.start();
    return 'kill postgres';
  },
  async restic({ nodes }) {
    const giveUpMs = systemClock.monotonicMs() + RESTIC_WITHIN_MS;
    while (systemClock.monotonicMs() < giveUpMs) {
      const found = nodes.flatMap(({ agent }) => resticOf(agent.pid()));
      for (const pid of found) killIfAlive(pid);
      if (found.length > 0) return 'kill restic';
      await systemClock.sleep(POLL_MS);
    }
    return null;
  },
  async slowStart({ services }, { draw, downMs }) {
    const service = pick(services, draw);
    service.setFaults({ startDelayMs: downMs });
    await service.kill();
    await service.start();
    service.setFaults({ startDelayMs: 0 });
    return `slow start of ${service.name}`;
  },
  async clock({ services }, { draw }, log) {
    const withClock = services.filter(({ name }) => !name.startsWith('ssh'));
    const service = pick(withClock, draw);
    const offsetMs = pick(CLOCK_OFFSETS_MS, Math.floor(draw / withClock.length));
    const fromMs = systemClock.now();
    service.setFaults({ clockOffsetMs: offsetMs });
    await systemClock.sleep(CLOCK_WRONG_MS);
    service.setFaults({ clockOffsetMs: 0 });
    log.clocks.push({ service: service.name, offsetMs, fromMs, toMs: systemClock.now() });
    return `clock ${offsetMs > 0 ? '+' : ''}${offsetMs / HOUR_MS} h of ${service.name}`;
  },
};

function pick<T>(all: readonly T[], draw: number): T {
  const found = all[draw % all.length];
  if (found === undefined) throw new Error('nothing to choose from');
  return found;
}

async function killed(service: Service, { downMs }: PlannedFault): Promise<string> {
  await service.kill();
  await systemClock.sleep(downMs);
  await service.start();
  return `kill ${service.name}`;
}

/** Returns the processes of restic that an agent has started. */
function resticOf(agentPid: number | null): number[] {
  if (agentPid === null) return [];
  return globSync(`/proc/${agentPid}/task/*/children`)
    .flatMap((file) => textOf(file).split(' ').map(Number))
    .filter((pid) => pid > 0 && textOf(`/proc/${pid}/comm`).trim() === 'restic');
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function killIfAlive(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended in the meantime.
  }
}
