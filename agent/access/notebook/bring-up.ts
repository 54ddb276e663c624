/** Brings up a notebook server in a pod: inspects the image, installs Jupyter, starts it and waits for an answer. */
import type { NotebookReason } from '#shared/api/agent/notebook.ts';
import { get } from '#shared/http/node-http.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { EngineError } from '../../containers/engine/engine.ts';
import {
  findingsArgv,
  type ImageFindings,
  type InstallWay,
  installArgv,
  installFailure,
  logArgv,
  nextStep,
  parseFindings,
  pathOf,
  startArgv,
  startEnvironment,
} from './jupyter.ts';
import type { NotebookPatch } from './notebook.state.ts';
import type { NotebookRow } from './notebook.store.ts';
import { lastLines, type PodPrograms } from './pod-programs.ts';

/** Time limit for the server to answer. A first start on a slow disk compiles a thousand modules. */
const READY_TIMEOUT_MS = 120_000;
/** Time limit for the inspection, which runs every Python and Jupyter of the image to get its version. */
const INSPECT_TIMEOUT_MS = 120_000;
const READY_POLL_MS = 300;
/** Timeout for reading the last lines of the server's log. */
const LOG_TIMEOUT_MS = 10_000;

/** A bring-up failed for a known reason; the message is shown to the renter. */
export class NotebookFailure extends Error {
  override name = 'NotebookFailure';
  readonly reason: NotebookReason;
  constructor(reason: NotebookReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

export type BringUpPorts = {
  programs: PodPrograms;
  probe: NotebookProbe;
  clock: Clock;
  /** Host port that renters use; null if the pod does not publish the internal port. */
  hostPort(): number | null;
  /** Stores progress; throws if a newer request replaced this one. */
  save(patch: NotebookPatch): NotebookRow;
  signal: AbortSignal;
};

/**
 * Resolves when the server answers and accepts its token only. Rejects with NotebookFailure, EngineError or the
 * signal's reason.
 */
export async function bringUp(row: NotebookRow, ports: BringUpPorts): Promise<void> {
  const { programs, save } = ports;
  const isRunning = row.exec_id !== null && (await programs.isAlive(row.exec_id));
  // An earlier agent process started the server and ended while it waited for an answer.
  if (isRunning && row.step === 'wait') return waitFor(row, ports);
  if (isRunning && row.exec_id !== null) await programs.end(row.exec_id);
  const { kind, program } = await provide(row, ports);
  save({ step: 'start', path: pathOf(kind) });
  await programs.startDetached(startArgv(program, row.internal_port), startEnvironment(row.token));
  return waitFor(save({ step: 'wait' }), ports);
}

/** Inspects the image and installs Jupyter until one can be started. */
async function provide(row: NotebookRow, ports: BringUpPorts) {
  const { programs, save, signal } = ports;
  const tried: InstallWay[] = [];
  for (;;) {
    save({ step: 'look' });
    const findings = await inspectImage(ports);
    if (findings.listening.includes(row.internal_port)) throw busy(row.internal_port);
    const next = nextStep(findings, tried);
    if (next.do === 'start') return next;
    if (next.do === 'give_up') throw new NotebookFailure(next.reason, next.message);
    save({ step: 'install' });
    const { exitCode, output } = await programs.run(installArgv(next.way, next.with), signal);
    if (exitCode !== 0) {
      const { reason, message } = installFailure(lastLines(output));
      throw new NotebookFailure(reason, message);
    }
    tried.push(next.way);
  }
}

async function inspectImage({ programs, clock, signal }: BringUpPorts): Promise<ImageFindings> {
  const late = clock.deadline(INSPECT_TIMEOUT_MS);
  try {
    const { output } = await programs.run(findingsArgv(), AbortSignal.any([signal, late]));
    return parseFindings(output);
  } catch (error) {
    if (late.aborted && !signal.aborted) {
      throw new NotebookFailure(
        'NotebookDeadlineExceeded',
        'The Python of the image does not answer',
      );
    }
    const refused = error instanceof EngineError && error.kind === 'refused';
    if (!refused) throw error;
    throw new NotebookFailure(
      'NotebookNoPython',
      'The image has no shell, so Jupyter cannot be installed',
    );
  }
}

async function waitFor(row: NotebookRow, ports: BringUpPorts): Promise<void> {
  const { programs, probe, clock, signal } = ports;
  const execId = row.exec_id ?? '';
  const untilMs = clock.monotonicMs() + READY_TIMEOUT_MS;
  for (;;) {
    signal.throwIfAborted();
    const port = ports.hostPort();
    if (port === null)
      throw new NotebookFailure('NotebookPortBusy', 'The pod does not publish this port');
    const alive = await programs.isAlive(execId);
    const answer = await probe.check(port, row.token);
    if (alive && answer === 'good') return;
    if (!alive) throw await notReady('The notebook server ended', ports);
    if (answer === 'open') {
      await programs.end(execId);
      throw new NotebookFailure(
        'NotebookNotReady',
        'The server accepts requests without its token',
      );
    }
    if (clock.monotonicMs() > untilMs) {
      await programs.end(execId);
      throw await notReady('The notebook server did not answer in time', ports);
    }
    await clock.sleep(READY_POLL_MS, signal);
  }
}

async function notReady(what: string, { programs, clock, signal }: BringUpPorts) {
  const { output } = await programs.run(logArgv(), clock.deadline(LOG_TIMEOUT_MS, signal));
  const lines = lastLines(output);
  return new NotebookFailure('NotebookNotReady', lines === '' ? what : `${what}: ${lines}`);
}

function busy(port: number): NotebookFailure {
  return new NotebookFailure(
    'NotebookPortBusy',
    `Another program in the pod listens on port ${port}; end it or choose another port`,
  );
}

const ANSWER_TIMEOUT_MS = 5_000;
const LOOPBACK = '127.0.0.1';

/**
 * `good`: the server accepts only its token. `open`: it also accepts requests without the token and must be ended.
 * `none`: it does not answer, or rejects its token.
 */
export type Answer = 'good' | 'open' | 'none';

export type NotebookProbe = {
  /** Returns true if the server accepts its token. */
  acceptsToken(port: number, token: string): Promise<boolean>;
  /** Sends a request with the token, and one without it, which the server must reject; servers log such requests. */
  check(port: number, token: string): Promise<Answer>;
};

/** Probes notebook servers at the host port that renters use. */
export function createNotebookProbe(clock: Clock): NotebookProbe {
  function statusOf(port: number, headers: Record<string, string>): Promise<number> {
    const signal = clock.deadline(ANSWER_TIMEOUT_MS);
    return new Promise((resolve) => {
      const request = get(
        { host: LOOPBACK, port, path: '/api/status', headers, agent: false, signal },
        (response) => {
          resolve(response.statusCode ?? 0);
          response.destroy();
        },
      );
      request.once('error', () => resolve(0));
    });
  }

  async function acceptsToken(port: number, token: string): Promise<boolean> {
    return (await statusOf(port, { authorization: `token ${token}` })) === 200;
  }

  return {
    acceptsToken,
    async check(port, token) {
      if (!(await acceptsToken(port, token))) return 'none';
      const withoutToken = await statusOf(port, {});
      if (withoutToken === 401 || withoutToken === 403) return 'good';
      return withoutToken === 0 ? 'none' : 'open';
    },
  };
}
