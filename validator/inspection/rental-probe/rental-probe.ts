/**
 * Rents a host as a renter would, from launch to removal. Each step has a timeout, and the pod is removed in every
 * case.
 */
import { createHash } from 'node:crypto';
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { PodView } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, isUnavailable, messageOf } from '#shared/runtime/errors.ts';
import { type Random, randomToken } from '#shared/runtime/random.ts';
import { createSshKeyPair } from '#shared/signing/openssh-key.ts';
import type { RentalFacts, RentalStep } from '../../checks/measured.ts';
import {
  type Expected,
  INSPECT_SCRIPT,
  leastSpec,
  memorySeen,
  probeSpec,
  shortfallIn,
} from './probe-spec.ts';
import { isOwnFault, type SshLogin, type SshSession } from './ssh-session.ts';

const READY_MS = 120_000;
const REMOVED_MS = 60_000;
const POLL_MS = 500;
const NONCE_BYTES = 16;
const BYTES_PER_KIB = 1_024;
const MAX_DETAIL_CHARS = 500;
const MAX_PODS_NAMED = 16;
/** Error codes of an older agent, which prove nothing about the host. */
const INCONCLUSIVE_CODES: readonly string[] = ['validation_error', 'not_found'];

export type ProbeDeps = {
  client: Pick<AgentClient, 'listPods' | 'putPod' | 'getPod' | 'deletePod'>;
  clock: Clock;
  random: Random;
  logIn: SshLogin;
};

export type ProbeRequest = {
  podId: string;
  host: string;
  inventory: Inventory;
  image: string;
  /** Aborts when a renter needs the host. */
  signal: AbortSignal;
};

export type ProbeEnd =
  /** `memory` as in RentalFacts. */
  | { status: 'passed'; memory: RentalFacts['memory'] }
  | { status: 'failed'; step: RentalStep; detail: string }
  | NotRun;

/** No result. `pods` are the pods that blocked the probe; `refused`: the agent refused or did not answer. */
export type NotRun = { status: 'not_run'; detail: string; pods: string[]; refused: boolean };

const YIELDED = 'stopped for a renter';

/** Returns true if the probe was stopped because the gateway relayed a rental of the host. */
export const yieldedToRenter = (rental: RentalFacts | null): boolean =>
  rental?.status === 'not_run' && !rental.repeated && rental.detail.startsWith(YIELDED);

/** Returns true if a pod still exists on the host. */
export const isPresent = ({ phase }: Pick<PodView, 'phase'>): boolean => phase !== 'removed';

/** Runs one probe. Never rejects. */
export async function rentOnce(deps: ProbeDeps, request: ProbeRequest): Promise<ProbeEnd> {
  const end = await endOf(deps, request, () => runSteps(deps, request));
  const removal = await endOf(deps, request, () => removePod(deps, request.podId));
  return removal.status === 'passed' || end.status !== 'passed' ? end : removal;
}

class StepFailed extends Error {
  readonly step: RentalStep;
  constructor(step: RentalStep, cause: unknown) {
    super(messageOf(cause), { cause });
    this.step = step;
  }
}

async function runSteps(deps: ProbeDeps, request: ProbeRequest): Promise<RentalFacts['memory']> {
  const { clock, random } = deps;
  const { podId, signal } = request;
  // The key stays in memory and is used for this pod only.
  const key = createSshKeyPair(random, 'podwright-rental-probe');
  const expected = await inStep('launch', () => launch(deps, request, key.publicKey));
  const ssh = await inStep('ready', () => readySsh(deps, podId, clock.deadline(READY_MS, signal)));
  const place = { host: request.host, port: ssh.port };
  const login = { ...key, hostKeyFingerprint: ssh.host_key_fingerprint, signal };
  const session = await inStep('login', () => deps.logIn(place, login));
  try {
    await inStep('command', () => runNonce(session, randomToken(random, NONCE_BYTES)));
    return await inStep('inside', () => lookInside(session, expected));
  } finally {
    session.end();
  }
}

/** Launches a pod with the whole host, or with the smallest rentable part if the provider's policy limits pods. */
async function launch(
  { client }: ProbeDeps,
  { podId, image, inventory }: ProbeRequest,
  publicKey: string,
): Promise<Expected> {
  const whole = probeSpec(inventory, { image, publicKey });
  try {
    await client.putPod(podId, whole.spec);
    return whole.expected;
  } catch (error) {
    if (!(error instanceof ApiError && isProviderPolicy(error))) throw error;
  }
  const least = leastSpec(inventory, { image, publicKey });
  await client.putPod(podId, least.spec);
  return least.expected;
}

async function inStep<T>(step: RentalStep, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new StepFailed(step, error);
  }
}

async function readySsh({ client, clock }: ProbeDeps, podId: string, signal: AbortSignal) {
  for (;;) {
    const view = await client.getPod(podId);
    const { phase, reason, message, ssh } = view;
    if (phase === 'running' && ssh?.ready === true) return ssh;
    const state = `${phase} ${reason ?? ''} ${message || unmetOf(view)}`.trim();
    if (phase === 'failed' || phase === 'quarantined') throw new Error(state);
    const slept = await clock.sleep(POLL_MS, signal).then(
      () => true,
      () => false,
    );
    if (!slept) throw new Error(`still ${state}`);
  }
}

const unmetOf = ({ conditions }: PodView): string =>
  conditions
    .flatMap(({ type, status, message }) => (status ? [] : `${type}: ${message}`))
    .join(', ');

/** Runs a command whose output cannot be prepared in advance. */
async function runNonce(session: SshSession, nonce: string): Promise<void> {
  const output = await session.run(`printf %s '${nonce}' | sha256sum`);
  const hash = createHash('sha256').update(nonce).digest('hex');
  if (!output.startsWith(hash)) throw new Error('a command returned an unexpected answer');
}

async function lookInside(session: SshSession, expected: Expected): Promise<RentalFacts['memory']> {
  const output = await session.run(INSPECT_SCRIPT);
  const less = shortfallIn(expected, output);
  if (less !== null) throw new Error(`the pod has ${less}`);
  const seen = memorySeen(output);
  const given = Math.floor(expected.memoryBytes / BYTES_PER_KIB);
  return seen === null ? null : { given_kib: given, seen_kib: seen };
}

/** Deletes the pod and polls until the agent reports it as removed. */
async function removePod({ client, clock }: ProbeDeps, podId: string): Promise<null> {
  const signal = clock.deadline(REMOVED_MS);
  return inStep('remove', async () => {
    for (;;) {
      const view = await client.deletePod(podId).catch((error: unknown) => {
        if (error instanceof ApiError && error.code === 'pod_not_found') return null;
        throw error;
      });
      if (view === null || !isPresent(view)) return null;
      await clock.sleep(POLL_MS, signal).catch(() => {
        throw new Error(`still ${view.phase} after ${REMOVED_MS / 1_000} s ${view.message}`.trim());
      });
    }
  });
}

async function endOf(
  deps: ProbeDeps,
  request: ProbeRequest,
  work: () => Promise<RentalFacts['memory']>,
): Promise<ProbeEnd> {
  try {
    return { status: 'passed', memory: await work() };
  } catch (error) {
    if (!(error instanceof StepFailed)) return notRun(messageOf(error));
    const detail = error.message.slice(0, MAX_DETAIL_CHARS);
    const reason = await inconclusiveReason(deps, request, error.cause);
    if (reason !== null) return { ...reason, detail: `${reason.detail}: ${detail}` };
    return { status: 'failed', step: error.step, detail };
  }
}

const notRun = (
  detail: string,
  { pods = [], refused = false }: { pods?: readonly PodView[]; refused?: boolean } = {},
): NotRun => ({
  status: 'not_run',
  detail,
  pods: pods.slice(0, MAX_PODS_NAMED).map(({ id }) => id),
  refused,
});

/** Result for a host that already has pods, which may belong to a renter. */
export const blockedByPods = (pods: readonly PodView[]): NotRun =>
  notRun('the host has a pod', { pods });

/** Returns the result for an inconclusive failure; null if the host is at fault. */
async function inconclusiveReason(
  { client }: ProbeDeps,
  { podId, signal }: ProbeRequest,
  cause: unknown,
): Promise<NotRun | null> {
  if (signal.aborted) return notRun(YIELDED);
  if (isOwnFault(cause)) return notRun('the validator failed');
  if (
    cause instanceof ApiError &&
    (isUnavailable(cause.code) || INCONCLUSIVE_CODES.includes(cause.code))
  )
    return notRun('the agent did not accept the pod', { refused: true });
  // The host may be unreachable as a whole, or a renter's pod may have been launched first.
  const pods = await client.listPods().catch(() => null);
  if (pods === null) return notRun('the agent stopped answering', { refused: true });
  const others = pods.filter((pod) => pod.id !== podId && isPresent(pod));
  return others.length > 0 ? notRun('a renter launched a pod', { pods: others }) : null;
}

/** Returns true if the provider's policy, which renters see in advance, rejected the spec. */
function isProviderPolicy({ code, options }: ApiError): boolean {
  return code === 'spec_refused' && (options.details?.['rule'] ?? 'host') !== 'host';
}
