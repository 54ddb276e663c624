/** Collects the facts of one executor: the only part of a check that touches the network. */
import type { AgentClient } from '#shared/agent-api/agent-client.ts';
import { type Inventory, isRentable, type VerifyResult } from '#shared/agent-api/inventory.ts';
import type { PodView } from '#shared/agent-api/pod.ts';
import { isInvalidAnswer } from '#shared/agent-api/refusal.ts';
import type { CheckWish, ExecutorToCheck } from '#shared/central-api/validator-routes.ts';
import type { Clock } from '#shared/clock.ts';
import { ApiError, messageOf } from '#shared/errors.ts';
import { peerRefusalIn } from '#shared/tls/peer-refused.ts';
import type { AgentIdentity, Facts, Policy, Refusal } from '../checks/check.ts';
import { nothingMeasured } from '../checks/measured.ts';
import type { ReadBanner } from '../rental-probe/ssh-session.ts';
import { sshReach } from './ssh-reach.ts';

const TRIES = 2;
/** In the evidence. */
const MAX_PODS = 64;

export type Inspection = {
  client: AgentClient;
  identityOf(executor: ExecutorToCheck): Promise<AgentIdentity>;
  clock: Clock;
  policy: Policy;
  readBanner: ReadBanner;
  /** Of whoever asked for it; null for what the host offers. */
  wish: CheckWish | null;
};

/** Never rejects: what could not be learnt is null in the facts. */
export async function inspect(
  executor: ExecutorToCheck,
  { client, identityOf, clock, policy, readBanner, wish }: Inspection,
): Promise<Facts> {
  const { askedMs, ...read } = await readInventory(client, clock, () => identityOf(executor));
  const facts = { executor, policy, receivedMs: clock.now(), measured: nothingMeasured(askedMs) };
  if ('error' in read) {
    const { error: transportError, refusal } = read;
    return { ...facts, inventory: null, identity: null, transportError, refusal, probe: null };
  }
  const { inventory, identity } = read;
  const seen = { ...facts, inventory, identity, transportError: null, refusal: null };
  const pods = await orNull(client.listPods());
  const told = { ...seen.measured, pods: pods?.slice(0, MAX_PODS).map(shown) ?? null };
  if (!executor.rented) {
    return { ...seen, measured: told, probe: await runProbe(client, inventory, wish) };
  }
  const ssh = pods === null ? null : await sshReach({ readBanner, clock }, executor, pods);
  return { ...seen, probe: null, measured: { ...told, ssh } };
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
  const peer = peerRefusalIn(failure);
  if (peer !== null) return peer.reason;
  if (isInvalidAnswer(failure)) return 'AGENT_ANSWER_INVALID';
  const isAnswer = failure instanceof ApiError && failure.code !== 'upstream_unavailable';
  return isAnswer ? 'AGENT_REFUSED' : null;
}

/** Null when the probe itself could not be asked for: that is no fault of the container runtime. */
async function runProbe(
  client: AgentClient,
  inventory: Inventory,
  wish: CheckWish | null,
): Promise<VerifyResult | null> {
  const real = inventory.gpu.driver === 'nvidia';
  // A card that its agent keeps from pods would fail the host, whose other cards may be sound.
  const offered = real ? inventory.gpu.devices.filter(isRentable) : [];
  const wished = wish?.gpu_uuids ?? [];
  const gpuUuids = wished.length > 0 ? wished : offered.map((device) => device.uuid);
  const cpuCores = wish?.cpu_count ?? inventory.cpu.cores;
  return orNull(client.verify({ gpu_uuids: gpuUuids, cpu_cores: cpuCores }));
}

async function orNull<T>(asking: Promise<T>): Promise<T | null> {
  try {
    return await asking;
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}
