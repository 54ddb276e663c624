/** One rental, from the launch to the removal, as a renter would have it: each step bounded, the pod removed in any case. */
import { createHash } from 'node:crypto';
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { PodView } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, messageOf } from '#shared/runtime/errors.ts';
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
/** What says nothing of the host, once: the way to it, an agent that is older than this. */
const INCONCLUSIVE_CODES: readonly string[] = [
  'upstream_unavailable',
  'validation_error',
  'not_found',
];

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
  /** Aborts when somebody else needs the host. */
  signal: AbortSignal;
};

export type ProbeEnd =
  /** `memory`: as RentalFacts has it. */
  | { status: 'passed'; memory: RentalFacts['memory'] }
  | { status: 'failed'; step: RentalStep; detail: string }
  | NotRun;

/**
 * Nothing was learnt of the host. `pods`: those that were in the way, as its agent has it; `refused`: the agent would
 * not have it, or did not answer.
 */
export type NotRun = { status: 'not_run'; detail: string; pods: string[]; refused: boolean };

const YIELDED = 'it gave way to a renter';

/** Whether somebody rents the host since it was tried: our own gateway knows that, whatever the host says. */
export const yieldedToRenter = (rental: RentalFacts | null): boolean =>
  rental?.status === 'not_run' && !rental.repeated && rental.detail.startsWith(YIELDED);

/** Whether a pod is on the host that is still to be reckoned with. */
export const isPresent = ({ phase }: Pick<PodView, 'phase'>): boolean => phase !== 'removed';

/** Never rejects. */
export async function rentOnce(deps: ProbeDeps, ask: ProbeRequest): Promise<ProbeEnd> {
  const end = await endOf(deps, ask, () => runSteps(deps, ask));
  const removal = await endOf(deps, ask, () => removed(deps, ask.podId));
  return removal.status === 'passed' || end.status !== 'passed' ? end : removal;
}

class StepFailed extends Error {
  readonly step: RentalStep;
  constructor(step: RentalStep, cause: unknown) {
    super(messageOf(cause), { cause });
    this.step = step;
  }
}

async function runSteps(deps: ProbeDeps, ask: ProbeRequest): Promise<RentalFacts['memory']> {
  const { clock, random } = deps;
  const { podId, signal } = ask;
  // In memory alone, and good for this one pod.
  const key = createSshKeyPair(random, 'podwright-rental-probe');
  const expected = await inStep('launch', () => launch(deps, ask, key.publicKey));
  const ssh = await inStep('ready', () => readySsh(deps, podId, clock.deadline(READY_MS, signal)));
  const place = { host: ask.host, port: ssh.port };
  const login = { ...key, hostKeyFingerprint: ssh.host_key_fingerprint, signal };
  const session = await inStep('login', () => deps.logIn(place, login));
  try {
    await inStep('command', () => runNonce(session, randomToken(random, NONCE_BYTES)));
    return await inStep('inside', () => lookInside(session, expected));
  } finally {
    session.end();
  }
}

/** The whole host; where its provider lets no pod have as much, the least that anybody would rent. */
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

/** What nobody could have written beforehand. */
async function runNonce(session: SshSession, nonce: string): Promise<void> {
  const output = await session.run(`printf %s '${nonce}' | sha256sum`);
  const hash = createHash('sha256').update(nonce).digest('hex');
  if (!output.startsWith(hash)) throw new Error('a command gave another answer than it should');
}

async function lookInside(session: SshSession, expected: Expected): Promise<RentalFacts['memory']> {
  const words = await session.run(INSPECT_SCRIPT);
  const less = shortfallIn(expected, words);
  if (less !== null) throw new Error(`inside there are ${less}`);
  const seen = memorySeen(words);
  const given = Math.floor(expected.memoryBytes / BYTES_PER_KIB);
  return seen === null ? null : { given_kib: given, seen_kib: seen };
}

/** Asks until nothing of it is left. */
async function removed({ client, clock }: ProbeDeps, podId: string): Promise<null> {
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
  ask: ProbeRequest,
  work: () => Promise<RentalFacts['memory']>,
): Promise<ProbeEnd> {
  try {
    return { status: 'passed', memory: await work() };
  } catch (error) {
    if (!(error instanceof StepFailed)) return notRun(messageOf(error));
    const detail = error.message.slice(0, MAX_DETAIL_CHARS);
    const excuse = await inconclusiveReason(deps, ask, error.cause);
    if (excuse !== null) return { ...excuse, detail: `${excuse.detail}: ${detail}` };
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

/** What is there already, which may be a renter's: a probe has to wait. */
export const blockedByPods = (pods: readonly PodView[]): NotRun =>
  notRun('a pod is there', { pods });

/** Why a failure says nothing of the host; null when it does. */
async function inconclusiveReason(
  { client }: ProbeDeps,
  { podId, signal }: ProbeRequest,
  cause: unknown,
): Promise<NotRun | null> {
  if (signal.aborted) return notRun(YIELDED);
  if (isOwnFault(cause)) return notRun('the validator could not');
  if (cause instanceof ApiError && INCONCLUSIVE_CODES.includes(cause.code))
    return notRun('the agent did not take it up', { refused: true });
  // The way to the host may be down as a whole, and a renter may have come first.
  const pods = await client.listPods().catch(() => null);
  if (pods === null) return notRun('the agent does not answer any more', { refused: true });
  const others = pods.filter((pod) => pod.id !== podId && isPresent(pod));
  return others.length > 0 ? notRun('a renter came', { pods: others }) : null;
}

/** Its own choice of what one pod may have, which renters see beforehand. */
function isProviderPolicy({ code, options }: ApiError): boolean {
  return code === 'spec_refused' && (options.details?.['rule'] ?? 'host') !== 'host';
}
