/** Collects what an executor says of itself: first what it is tried by, then, after the trials, what it is judged by. */
import { type AgentClient, isInvalidResponse } from '#shared/api/agent/agent-client.ts';
import { type Inventory, isRentable, type VerifyResult } from '#shared/api/agent/inventory.ts';
import type { PodView } from '#shared/api/agent/pod.ts';
import type { CheckRequest, ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
import { findPeerRefusal } from '#shared/tls/peer.ts';
import { missingSources } from '../checks/agent.check.ts';
import type { AgentIdentity, Facts, Policy, Refusal } from '../checks/check.ts';
import { loadOf, type Measured, nothingMeasured, type Unanswered } from '../checks/measured.ts';
import type { ReadBanner } from './rental-probe/ssh-session.ts';

const TRIES = 2;
/** In the evidence. */
const MAX_PODS = 64;
/** What is older is read again before it is judged: a host may break while it is being tried. */
const FRESH_MS = 5_000;

export type Inspection = {
  client: AgentClient;
  identityOf(executor: ExecutorToCheck): Promise<AgentIdentity>;
  clock: Clock;
  policy: Policy;
  readBanner: ReadBanner;
};

/** Who it is and what it has. Never rejects: what could not be learnt is null in the facts. */
export async function readAgent(
  executor: ExecutorToCheck,
  { client, identityOf, clock, policy }: Inspection,
): Promise<Facts> {
  const { askedMs, ...read } = await readInventory(client, clock, () => identityOf(executor));
  const receivedMs = clock.now();
  const facts = { executor, policy, receivedMs, probe: null, measured: nothingMeasured(askedMs) };
  if ('error' in read) {
    const { error: transportError, refusal } = read;
    return { ...facts, inventory: null, identity: null, transportError, refusal };
  }
  return { ...facts, ...read, transportError: null, refusal: null };
}

/**
 * What it is judged by: all of it as it is now, the pods included, but for what it was tried by, and for the load that
 * was on it before. `receivedMs` is of this reading. Never rejects.
 */
export async function recheck(tried: Facts, inspection: Inspection): Promise<Facts> {
  const facts = await freshOf(tried, inspection);
  const { executor, measured } = facts;
  if (facts.inventory === null) return facts;
  const { client, clock, readBanner } = inspection;
  const { answer: pods, ...open } = await ask('pods', client.listPods());
  const unanswered = [
    ...measured.unanswered,
    ...open.unanswered,
    ...missingSources(facts.inventory),
  ];
  const told = { ...measured, unanswered, pods: pods?.slice(0, MAX_PODS).map(shown) ?? null };
  if (!executor.rented || pods === null) return { ...facts, measured: told };
  const ssh = await sshReach({ readBanner, clock }, executor, pods);
  return { ...facts, measured: { ...told, ssh } };
}

async function freshOf(tried: Facts, inspection: Inspection): Promise<Facts> {
  const { executor, inventory, receivedMs, measured, probe } = tried;
  const ageMs = inspection.clock.now() - receivedMs;
  if (inventory === null || (ageMs >= 0 && ageMs <= FRESH_MS)) return tried;
  const read = await readAgent(executor, inspection);
  const { asked_ms } = read.measured;
  return {
    ...read,
    probe: read.inventory === null ? null : probe,
    measured: { ...measured, asked_ms, load: loadOf(inventory) },
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

/** Null where nobody answered. */
function refusalIn(failure: unknown): Refusal | null {
  const peer = findPeerRefusal(failure);
  if (peer !== null) return peer.reason;
  if (isInvalidResponse(failure)) return 'AGENT_ANSWER_INVALID';
  const isAnswer = failure instanceof ApiError && failure.code !== 'upstream_unavailable';
  return isAnswer ? 'AGENT_REFUSED' : null;
}

/**
 * Has a container started with what the host offers, or what `wish` asks for. No answer when that itself could not be
 * asked for, which is no fault of the container runtime, and on a rented host.
 */
export async function runProbe(
  { executor, inventory }: Facts,
  client: AgentClient,
  wish: CheckRequest | null,
): Promise<AgentAnswer<VerifyResult>> {
  if (inventory === null || executor.rented) return NOT_QUERIED;
  const real = inventory.gpu.driver === 'nvidia';
  // A card that its agent keeps from pods would fail the host, whose other cards may be sound.
  const offered = real ? inventory.gpu.devices.filter(isRentable) : [];
  const wished = wish?.gpu_uuids ?? [];
  const gpuUuids = wished.length > 0 ? wished : offered.map((device) => device.uuid);
  const cpuCores = wish?.cpu_count ?? inventory.cpu.cores;
  return ask('container', client.verify({ gpu_uuids: gpuUuids, cpu_cores: cpuCores }));
}

// MERGED validator/inspection/inspect.ts: One question to an agent that has shown itself: its answer, or that there was none, and why.
export const MAX_PROBLEM_CHARS = 300;

export type AgentAnswer<T> = { answer: T | null; unanswered: Unanswered[] };

export const NOT_QUERIED: AgentAnswer<never> = { answer: null, unanswered: [] };

/** Rejects only for what is our own fault. A refusal and silence are the same here: by either nothing is learnt. */
export async function ask<T>(
  question: Unanswered['question'],
  asking: Promise<T>,
): Promise<AgentAnswer<T>> {
  try {
    return { answer: await asking, unanswered: [] };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const problem = error.message.slice(0, MAX_PROBLEM_CHARS);
    return { answer: null, unanswered: [{ question, problem, repeated: false }] };
  }
}

// MERGED validator/inspection/inspect.ts: Whether pods of a rented host are reached: who listens at their SSH port says so by itself, and nothing is sent.
/** A pod may take as long before its login works. */
const FIRST_MS = 90_000;
const BANNER_MS = 10_000;
const MAX_SSH_PODS = 16;

/** Null where it could not be tried. */
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
  const looks = old
    .flatMap(({ id, ssh }) => (ssh === null ? [] : [{ id, port: ssh.port }]))
    .slice(0, MAX_SSH_PODS)
    .map(async ({ id, port }) => ({ pod: id, problem: await readBanner({ host, port }, signal) }));
  return Promise.all(looks).catch(() => null);
}
