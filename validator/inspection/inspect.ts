/** Reads facts about an executor from its agent: before the trials, and again before the verdict. */
import { type AgentClient, isInvalidResponse } from '#shared/api/agent/agent-client.ts';
import { type Inventory, isRentable, type VerifyResult } from '#shared/api/agent/inventory.ts';
import type { PodView } from '#shared/api/agent/pod.ts';
import type { CheckRequest, ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, isUnavailable, messageOf } from '#shared/runtime/errors.ts';
import { findPeerRefusal } from '#shared/tls/peer.ts';
import { missingSources } from '../checks/agent.check.ts';
import type { AgentIdentity, Facts, Policy, Refusal } from '../checks/check.ts';
import {
  loadOf,
  type Measured,
  nothingMeasured,
  type PortFacts,
  type Unanswered,
} from '../checks/measured.ts';
import type { ReadBanner } from './rental-probe/ssh-session.ts';

const TRIES = 2;
/** Maximum number of pods recorded as evidence. */
const MAX_PODS = 64;
/** Maximum age of the facts of a verdict. Older facts are read again, because a host may break during the trials. */
const FRESH_MS = 5_000;

export type Inspection = {
  client: AgentClient;
  /** Identity of an agent that has just answered. */
  identityOf(executor: ExecutorToCheck): Promise<AgentIdentity>;
  /** Observes the port of an agent that did not answer. Never rejects. */
  observePort(executor: ExecutorToCheck): Promise<PortFacts>;
  clock: Clock;
  policy: Policy;
  readBanner: ReadBanner;
};

/** Reads inventory and identity. Never rejects: facts that could not be read are null. */
export async function readAgent(
  executor: ExecutorToCheck,
  { client, identityOf, observePort, clock, policy }: Inspection,
): Promise<Facts> {
  const { askedMs, ...read } = await readInventory(client, clock, () => identityOf(executor));
  const receivedMs = clock.now();
  const facts = { executor, policy, receivedMs, probe: null, measured: nothingMeasured(askedMs) };
  if ('error' in read) {
    const { error: transportError, refusal } = read;
    const port = refusal === null ? await observePort(executor) : null;
    const measured = { ...facts.measured, port };
    return { ...facts, measured, inventory: null, identity: null, transportError, refusal };
  }
  return { ...facts, ...read, transportError: null, refusal: null };
}

/**
 * Reads again everything on which the verdict depends, including pods. Retains the results of trials and the load
 * measured before them. `receivedMs` is the time of this reading. Never rejects.
 */
export async function recheck(tried: Facts, inspection: Inspection): Promise<Facts> {
  const facts = await freshOf(tried, inspection);
  const { executor, measured } = facts;
  if (facts.inventory === null) return facts;
  const { client, clock, readBanner } = inspection;
  const { answer: pods, ...open } = await query('pods', client.listPods());
  const unanswered = [
    ...measured.unanswered,
    ...open.unanswered,
    ...missingSources(facts.inventory),
  ];
  const reported = { ...measured, unanswered, pods: pods?.slice(0, MAX_PODS).map(shown) ?? null };
  if (!executor.rented || pods === null) return { ...facts, measured: reported };
  const ssh = await sshReach({ readBanner, clock }, executor, pods);
  return { ...facts, measured: { ...reported, ssh } };
}

async function freshOf(tried: Facts, inspection: Inspection): Promise<Facts> {
  const { executor, inventory, receivedMs, measured, probe } = tried;
  const ageMs = inspection.clock.now() - receivedMs;
  if (inventory === null || (ageMs >= 0 && ageMs <= FRESH_MS)) return tried;
  const read = await readAgent(executor, inspection);
  const { asked_ms, port } = read.measured;
  return {
    ...read,
    probe: read.inventory === null ? null : probe,
    measured: { ...measured, asked_ms, port, load: loadOf(inventory) },
  };
}

const shown = ({ id, phase, reason, gpu_uuids }: PodView) => ({ id, phase, reason, gpu_uuids });

type Read = { askedMs: number } & (
  | { inventory: Inventory; identity: AgentIdentity }
  | { error: string; refusal: Refusal | null }
);

async function readInventory(
  client: AgentClient,
  clock: Clock,
  identityOf: () => Promise<AgentIdentity>,
): Promise<Read> {
  let read: Read = { askedMs: 0, error: '', refusal: null };
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const askedMs = clock.now();
    try {
      const inventory = await client.inventory();
      const { publicKey, enrolledUntilMs } = await identityOf();
      return { askedMs, inventory, identity: { publicKey, enrolledUntilMs } };
    } catch (failure) {
      const error = messageOf(failure).slice(0, 1000);
      read = { askedMs, error, refusal: refusalIn(failure) };
    }
  }
  return read;
}

/** Refusal of the peer; null if there was no answer. */
function refusalIn(failure: unknown): Refusal | null {
  const peer = findPeerRefusal(failure);
  if (peer !== null) return peer.reason;
  if (isInvalidResponse(failure)) return 'AGENT_ANSWER_INVALID';
  const isAnswer = failure instanceof ApiError && !isUnavailable(failure.code);
  return isAnswer ? 'AGENT_REFUSED' : null;
}

/**
 * Starts a container with the GPUs and cores of the host, or with those of `request`. Sends no request on a rented
 * host. The answer is null if the agent could not be reached, which is not a fault of the container runtime.
 */
export async function runProbe(
  { executor, inventory }: Facts,
  client: AgentClient,
  request: CheckRequest | null,
): Promise<AgentAnswer<VerifyResult>> {
  if (inventory === null || executor.rented) return NOT_QUERIED;
  const real = inventory.gpu.driver === 'nvidia';
  // Cards that the agent excludes from pods are left out: they would fail the host, whose other cards may be healthy.
  const offered = real ? inventory.gpu.devices.filter(isRentable) : [];
  const requested = request?.gpu_uuids ?? [];
  const gpuUuids = requested.length > 0 ? requested : offered.map((device) => device.uuid);
  const cpuCores = request?.cpu_count ?? inventory.cpu.cores;
  return query('container', client.verify({ gpu_uuids: gpuUuids, cpu_cores: cpuCores }));
}

export const MAX_PROBLEM_CHARS = 300;

export type AgentAnswer<T> = { answer: T | null; unanswered: Unanswered[] };

export const NOT_QUERIED: AgentAnswer<never> = { answer: null, unanswered: [] };

/**
 * Awaits the answer of an agent whose identity was verified. A refusal counts like a missing answer. Rejects only for
 * errors of the validator.
 */
export async function query<T>(
  question: Unanswered['question'],
  request: Promise<T>,
): Promise<AgentAnswer<T>> {
  try {
    return { answer: await request, unanswered: [] };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const problem = error.message.slice(0, MAX_PROBLEM_CHARS);
    return { answer: null, unanswered: [{ question, problem, repeated: false }] };
  }
}

/** Minimum age in milliseconds of a pod whose SSH port must answer. */
const FIRST_MS = 90_000;
const BANNER_MS = 10_000;
const MAX_SSH_PODS = 16;

/** Reads the SSH banner of each running pod without sending anything. Null if the validator could not connect at all. */
export async function sshReach(
  { readBanner, clock }: { readBanner: ReadBanner; clock: Clock },
  executor: ExecutorToCheck,
  pods: readonly PodView[],
): Promise<Measured['ssh']> {
  const old = pods.filter(
    ({ phase, phase_since_ms: sinceMs }) =>
      phase === 'running' && clock.now() - sinceMs >= FIRST_MS,
  );
  const signal = clock.deadline(BANNER_MS);
  const host = executor.executor_ip_address;
  const attempts = old
    .flatMap(({ id, ssh }) => (ssh === null ? [] : [{ id, port: ssh.port }]))
    .slice(0, MAX_SSH_PODS)
    .map(async ({ id, port }) => ({ pod: id, problem: await readBanner({ host, port }, signal) }));
  return Promise.all(attempts).catch(() => null);
}
