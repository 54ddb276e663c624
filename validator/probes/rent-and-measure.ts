/** Carries out a planned rental as a renter does: waits for the pod, logs in twice, reads log and metrics, and ends it. */
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { sshFingerprint } from '#shared/signing/openssh-key.ts';
import type { HiddenRentalFacts } from '../checks/measured.ts';
import {
  isOwnFault,
  type SshLogin,
  type SshSession,
} from '../inspection/rental-probe/ssh-session.ts';
import { type MeasurementPlan, planMeasurement, seenIn } from './measurement.plan.ts';
import type { RentalPlan } from './rental.plan.ts';
import type { RentedPod, RenterClient } from './renter-client.ts';
import { compareMeasurements, type Measurement, type Offer, offerOf } from './seen.ts';
import { ProxyFailed } from './socks.ts';

export type RentalPorts = {
  clock: Clock;
  /** Source of the measurements. */
  random: Random;
  client: Pick<RenterClient, 'pod' | 'metrics' | 'readLog'>;
  logIn: SshLogin;
  signal: AbortSignal;
};

export type RunningRental = {
  podId: string;
  plan: RentalPlan;
  privateKeyPem: string;
  /** Startup commands of the template. */
  startupCommands: string;
};

/** Thrown if the rental could not be made or measured, which proves nothing about the host. */
export class NotMeasured extends Error {}

/** Longest wait for the pod. */
const START_MS = 1_800_000;
const LOG_MS = 5_000;
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
  await visitPages(ports, rental);
  await clock.sleep(plan.loginAfterMs, signal);
  const first = await measureIn(ports, rental, offer);
  await clock.sleep(plan.betweenMs, signal);
  const second = await measureIn(ports, rental, offer);
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

/** Reads log and metrics as the pages of a portal do; a page that fails is left out. */
async function visitPages(
  { clock, client, signal }: RentalPorts,
  { podId, plan }: RunningRental,
): Promise<void> {
  const { logReads, metricReads, pollMs } = plan;
  if (logReads !== 'none') {
    await client.readLog(podId, logReads === 'once' ? pollMs : LOG_MS).catch(() => undefined);
  }
  for (let read = 0; read < metricReads; read += 1) {
    await client.metrics(podId).catch(() => undefined);
    await clock.sleep(pollMs, signal);
  }
}

type Measured = { measurement: Measurement; downKbit: number | null };

/** Reads the pod's address anew, because the pod may have been restarted. */
async function measureIn(
  ports: RentalPorts,
  rental: RunningRental,
  offer: Offer,
): Promise<Measured> {
  const { client, random, signal } = ports;
  const pod = await client.pod(rental.podId);
  if (!isReachable(pod)) throw new NotMeasured(`the pod is ${pod.status}`);
  let session: SshSession;
  try {
    session = await logInTo(ports, pod, rental);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof NotMeasured) throw error;
    if (isOwnFault(error) || error instanceof ProxyFailed) throw new NotMeasured(messageOf(error));
    return unreachable(ports, rental, error);
  }
  try {
    const plan = planMeasurement(random, offer);
    const seen = await carryOut(ports, session, plan);
    return { measurement: { seen }, downKbit: await transferSpeed(ports, session, plan) };
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

function logInTo(
  { logIn, signal }: RentalPorts,
  { ssh_connect_cmd: command, ssh_host_key: hostKey }: RentedPod,
  { privateKeyPem }: RunningRental,
): Promise<SshSession> {
  const { host, before, after } = CONNECT.exec(command ?? '')?.groups ?? {};
  if (host === undefined) throw new NotMeasured('the connect command has another form');
  const port = Number(before ?? after ?? SSH_PORT);
  // A node without a host key must not escape the measurement.
  const hostKeyFingerprint = hostKey === null ? null : sshFingerprint(hostKey);
  return logIn({ host, port }, { privateKeyPem, hostKeyFingerprint, signal });
}

/** Runs the steps one after the other. The output of a step that fails is empty. */
async function carryOut(
  { clock, signal }: RentalPorts,
  session: SshSession,
  plan: MeasurementPlan,
) {
  const reads: ReturnType<MeasurementPlan['steps'][number]['read']>[] = [];
  for (const { pauseMs, command, input, read } of plan.steps) {
    await clock.sleep(pauseMs, signal);
    const output = await session.run(command, input, COMMAND_MS).catch(() => '');
    signal.throwIfAborted();
    reads.push(read(output));
  }
  return seenIn(reads);
}

/** Sends data into the pod. Returns kilobits per second; null if the transfer failed. */
async function transferSpeed(
  { clock, random }: RentalPorts,
  session: SshSession,
  { transfer: { command, bytes } }: MeasurementPlan,
): Promise<number | null> {
  const data = Buffer.alloc(bytes, random.bytes(PATTERN_BYTES));
  const startedMs = clock.monotonicMs();
  const isDone = await session.run(command, data).then(
    () => true,
    () => false,
  );
  const ms = clock.monotonicMs() - startedMs;
  return isDone && ms > 0 ? Math.floor((bytes * 8) / ms) : null;
}
