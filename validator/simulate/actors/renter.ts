/** Renters: each rents for a job, waits until the pod runs, uses it, and ends it. */
import type { Job } from '../scenarios/scenario.ts';
import type { World } from '../world/world.ts';
import { codeIn, constraintIn, expectAnswer, Rented } from './answers.ts';
import { chance, exponential, logNormal, weighted } from './draws.ts';
import { lookPauses } from './looks.ts';
import { endPod, podRequest, podStatus, type Requester, send } from './pod-requests.ts';
import { pauseFactor } from './price-level.ts';

/** Outcome of jobs, for the report. */
export type RenterFigures = {
  jobs: number;
  /** Refusals by error code. */
  refusals: Map<string, number>;
  rented: number;
  /** Milliseconds from the rental to RUNNING, for each pod that ran. */
  startMs: number[];
  failedStarts: number;
  /** Pods that ended before their renter ended them, by the last status. */
  interrupted: Map<string, number>;
};

export const noFigures = (): RenterFigures => ({
  jobs: 0,
  refusals: new Map(),
  rented: 0,
  startMs: [],
  failedStarts: 0,
  interrupted: new Map(),
});

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const MINUTES = 60;
const MICRO_USD = 1_000_000;
/**
 * Time within which a rental must run, fail or be refunded: the longest launch of the central API, with the pauses of
 * its jobs.
 */
const DECIDED_WITHIN_MS = 2 * HOUR_MS + 30 * MINUTE_MS;

type RunningRenter = Requester & { figures: RenterFigures };

/** Runs one job after the other until `signal` aborts. The pod of the last job remains. */
export async function runRenter(parts: RunningRenter, signal: AbortSignal): Promise<void> {
  const { world, renter } = parts;
  const { demand } = world.scenario;
  for (;;) {
    const job = weighted(renter.random, demand.jobs);
    const factor = pauseFactor(world.prices.of(job.gpu), demand.price_elasticity);
    const pauseMs = exponential(renter.random, demand.pause_hours * HOUR_MS * factor);
    await world.clock.sleep(pauseMs, signal);
    await runJob(parts, job, signal);
  }
}

async function runJob(parts: RunningRenter, job: Job, signal: AbortSignal): Promise<void> {
  const { world, renter, figures } = parts;
  const { clock, scenario } = world;
  const hours = logNormal(renter.random, job.hours, job.hours_sigma);
  const isForgotten = chance(renter.random, scenario.demand.idle_permille);
  figures.jobs += 1;
  const podId = await rent(parts, job, hours);
  if (podId === null) return;
  const isRunning = await awaitStart(parts, podId, signal);
  if (!isRunning) return endPod(parts, podId);
  if (isForgotten) return;
  const untilMs = clock.steadyMs() + Math.round(hours * HOUR_MS);
  const watchMs = scenario.watch_minutes * MINUTE_MS;
  while (clock.steadyMs() < untilMs) {
    await clock.sleep(Math.min(watchMs, untilMs - clock.steadyMs()), signal);
    const status = await podStatus(parts, podId);
    if (status === 'RUNNING' || status === 'PENDING') continue;
    figures.interrupted.set(status, (figures.interrupted.get(status) ?? 0) + 1);
    return endPod(parts, podId);
  }
  await endPod(parts, podId);
}

/** Returns the id of the pod; null if the rental was refused. */
async function rent(parts: RunningRenter, job: Job, hours: number): Promise<string | null> {
  const { world, renter, figures } = parts;
  const answer = await send(parts, {
    method: 'POST',
    path: '/api/executors/rent-by-spec',
    body: {
      ...podRequest(renter),
      gpu_count: job.gpus,
      max_price_per_gpu_hour: job.max_price_usd,
      ...(job.gpu === undefined ? {} : { gpu_type: job.gpu }),
    },
  });
  const code = codeIn(answer);
  const actor = renter.name;
  if (code !== null) {
    figures.refusals.set(code, (figures.refusals.get(code) ?? 0) + 1);
    const { gpu, gpus } = job;
    world.journal.record({
      kind: 'refused',
      actor,
      code,
      constraint: constraintIn(answer),
      gpu,
      gpus,
    });
    return null;
  }
  const rented = expectAnswer(Rented, answer, 'rental');
  const { pod_id: pod, selected_executor: executor } = rented;
  figures.rented += 1;
  world.journal.record({
    kind: 'rented',
    actor,
    pod,
    executor: executor.id,
    gpus: job.gpus,
    minutes: Math.round(hours * MINUTES),
    price_uusd_per_hour: Math.round(rented.price_per_hour * MICRO_USD),
  });
  return pod;
}

/** Time for which the central API could not decide about rentals, and time by which its limits are wrong. */
const excusesOf = ({ clock, services }: World): number =>
  services.central.downMs() + clock.jumpedMs();

/** Returns true when the pod runs, false when it has failed. */
async function awaitStart(
  parts: RunningRenter,
  podId: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { world, figures } = parts;
  const { clock, violations } = world;
  const beganMs = clock.steadyMs();
  const excusedMs = excusesOf(world);
  for (const pauseMs of lookPauses()) {
    await clock.sleep(pauseMs, signal);
    const status = await podStatus(parts, podId);
    const tookMs = clock.steadyMs() - beganMs;
    if (status === 'RUNNING') {
      figures.startMs.push(tookMs);
      return true;
    }
    if (status !== 'PENDING') {
      figures.failedStarts += 1;
      return false;
    }
    if (tookMs > DECIDED_WITHIN_MS + excusesOf(world) - excusedMs) {
      violations.report('rental-decided', `a pod is PENDING after ${tookMs} ms`, [podId]);
      return false;
    }
  }
  return false;
}
