/** Carries out a planned rental as a renter does: waits for the pod, and logs in to measure it, twice. */
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { type SshKeyPair, sshFingerprint } from '#shared/signing/openssh-key.ts';
import type { HiddenRentalFacts } from '../checks/measured.ts';
import { type MeasurementPlan, planMeasurement, seenIn } from './measurement.plan.ts';
import {
  LoginFailed,
  LoginNotTried,
  type RenterLogin,
  type RenterSession,
} from './openssh-login.ts';
import type { RentalPlan } from './rental.plan.ts';
import type { RentedPod, RenterClient } from './renter-client.ts';
import { compareMeasurements, type Measurement, type Offer, offerOf } from './seen.ts';

export type RentalPorts = {
  clock: Clock;
  /** Source of the measurements. */
  random: Random;
  client: Pick<RenterClient, 'pod'>;
  logIn: RenterLogin;
  signal: AbortSignal;
};

export type RunningRental = {
  podId: string;
  plan: RentalPlan;
  key: SshKeyPair;
  /** Startup commands of the template. */
  startupCommands: string;
};

/** Thrown if the rental could not be made or measured, which proves nothing about the host. */
export class NotMeasured extends Error {}

/** Longest wait for the pod. */
const START_MS = 1_800_000;
/** Limit of a command, which a starved pod executes slowly. */
const COMMAND_MS = 120_000;
const MAX_REASON_CHARS = 200;
const PATTERN_BYTES = 4_096;

/** Resolves with the facts of both measurements. Rejects with NotMeasured. Does not end the rental. */
export async function rentAndMeasure(
  ports: RentalPorts,
  rental: RunningRental,
): Promise<HiddenRentalFacts> {
  const { clock, signal } = ports;
  const { plan, startupCommands } = rental;
  const pod = await runningPod(ports, rental);
  const offer = offerOf(pod, startupCommands);
  await clock.sleep(plan.loginAfterMs, signal);
  const first = await measureIn(ports, { ...rental, pod, offer });
  await clock.sleep(plan.betweenMs, signal);
  // The pod may have been restarted.
  const again = await ports.client.pod(rental.podId);
  if (!isReachable(again)) throw new NotMeasured(`the pod is ${again.status}`);
  const second = await measureIn(ports, { ...rental, pod: again, offer });
  return compareMeasurements(offer, [first.measurement, second.measurement], {
    downKbit: second.downKbit ?? first.downKbit,
    endedMs: clock.now(),
  });
}

async function runningPod(
  { clock, client, signal }: RentalPorts,
  { podId, plan }: RunningRental,
): Promise<RentedPod> {
  const startedMs = clock.monotonicMs();
  for (;;) {
    const pod = await client.pod(podId);
    if (isReachable(pod)) return pod;
    if (pod.status !== 'PENDING' && pod.status !== 'RUNNING') {
      throw new NotMeasured(`the pod is ${pod.status}`);
    }
    if (clock.monotonicMs() - startedMs > START_MS) throw new NotMeasured('the pod did not start');
    await clock.sleep(plan.pollMs, signal);
  }
}

const isReachable = ({ status, ssh_connect_cmd: command }: RentedPod): boolean =>
  status === 'RUNNING' && command !== null;

type Measured = { measurement: Measurement; downKbit: number | null };

type Measurable = RunningRental & { pod: RentedPod; offer: Offer };

async function measureIn(ports: RentalPorts, rental: Measurable): Promise<Measured> {
  const { random, signal } = ports;
  const { pod, offer } = rental;
  const session = sessionIn(ports, pod, rental);
  try {
    const plan = planMeasurement(random, offer);
    const seen = await carryOut(ports, session, plan);
    return { measurement: { seen }, downKbit: await transferSpeed(ports, session, plan) };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof LoginFailed) return unreachable(ports, rental, error);
    throw error instanceof LoginNotTried ? new NotMeasured(error.message) : error;
  } finally {
    session.end();
  }
}

/** The host is at fault only if the market still reports that the pod runs. */
async function unreachable(
  { client }: RentalPorts,
  { podId }: RunningRental,
  error: unknown,
): Promise<Measured> {
  const pod = await client.pod(podId);
  if (!isReachable(pod)) throw new NotMeasured(`the pod is ${pod.status}`);
  const reason = messageOf(error).slice(0, MAX_REASON_CHARS);
  return { measurement: { unreachable: reason }, downKbit: null };
}

const CONNECT = /^ssh (?:-p (?<before>\d{1,5}) )?\S+@(?<host>\S+)(?: -p (?<after>\d{1,5}))?$/;
const SSH_PORT = 22;

function sessionIn(
  { logIn, signal }: RentalPorts,
  { ssh_connect_cmd: command, ssh_host_key: hostKey }: RentedPod,
  { key, plan: { locale } }: RunningRental,
): RenterSession {
  const { host, before, after } = CONNECT.exec(command ?? '')?.groups ?? {};
  if (host === undefined) throw new NotMeasured('the connect command has another form');
  const port = Number(before ?? after ?? SSH_PORT);
  // A node without a host key must not escape the measurement.
  const hostKeyFingerprint = hostKey === null ? null : sshFingerprint(hostKey);
  return logIn({ host, port }, { key, hostKeyFingerprint, locale, signal });
}

const isLoginError = (error: unknown): boolean =>
  error instanceof LoginFailed || error instanceof LoginNotTried;

/** Runs the steps one after the other. The output of a step that fails is empty; rejects if the first login fails. */
async function carryOut(
  { clock, signal }: RentalPorts,
  session: RenterSession,
  plan: MeasurementPlan,
) {
  const reads: ReturnType<MeasurementPlan['steps'][number]['read']>[] = [];
  for (const { pauseMs, command, input, read } of plan.steps) {
    await clock.sleep(pauseMs, signal);
    const output = await session.run(command, input, COMMAND_MS).catch((error: unknown) => {
      if (reads.length === 0 && isLoginError(error)) throw error;
      return '';
    });
    signal.throwIfAborted();
    reads.push(read(output));
  }
  return seenIn(reads);
}

/** Sends data into the pod. Returns kilobits per second; null if the transfer failed. */
async function transferSpeed(
  { random }: RentalPorts,
  session: RenterSession,
  { transfer: { command, bytes } }: MeasurementPlan,
): Promise<number | null> {
  const pattern = Buffer.from(random.bytes(PATTERN_BYTES)).toString('base64');
  const data = pattern.repeat(Math.ceil(bytes / pattern.length)).slice(0, bytes);
  return session.send(command, data).catch(() => null);
}
