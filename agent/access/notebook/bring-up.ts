/** From a pod as it is to a notebook server that answers: look, install, start, wait. */
import type { NotebookReason } from '#shared/api/agent/notebook.ts';
import { get } from '#shared/http/node-http.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { EngineError } from '../../containers/engine/engine.ts';
import {
  type InstallWay,
  installArgv,
  installFailure,
  type Look,
  logArgv,
  lookArgv,
  nextStep,
  parseLook,
  pathOf,
  startArgv,
  startEnvironment,
} from './jupyter.ts';
import type { NotebookPatch } from './notebook.state.ts';
import type { NotebookRow } from './notebook.store.ts';
import { lastLines, type PodPrograms } from './pod-programs.ts';

/** A first start on a slow disk compiles a thousand modules. */
const READY_WITHIN_MS = 120_000;
/** Each Python and Jupyter of the image is asked for its version. */
const LOOK_WITHIN_MS = 120_000;
const READY_POLL_MS = 300;
/** Of the last lines that tell why a server ended. */
const LOG_WITHIN_MS = 10_000;

/** Known reasons why a pod has no notebook server; its message is for the renter. */
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
  ask: AskNotebook;
  clock: Clock;
  /** Where renters reach the server; null when the pod has no such port. */
  hostPort(): number | null;
  /** Writes progress; throws when something newer is wanted. */
  save(patch: NotebookPatch): NotebookRow;
  signal: AbortSignal;
};

/** Resolves when the server answers as it should; rejects with NotebookFailure, EngineError or the signal's reason. */
export async function bringUp(row: NotebookRow, ports: BringUpPorts): Promise<void> {
  const { programs, save } = ports;
  const isLeft = row.exec_id !== null && (await programs.isAlive(row.exec_id));
  // An agent before this one had started it and was still waiting.
  if (isLeft && row.step === 'wait') return waitFor(row, ports);
  if (isLeft && row.exec_id !== null) await programs.end(row.exec_id);
  const { kind, program } = await provide(row, ports);
  save({ step: 'start', path: pathOf(kind) });
  await programs.startAlone(startArgv(program, row.internal_port), startEnvironment(row.token));
  return waitFor(save({ step: 'wait' }), ports);
}

/** Looks and installs until there is something to start. */
async function provide(row: NotebookRow, ports: BringUpPorts) {
  const { programs, save, signal } = ports;
  const tried: InstallWay[] = [];
  for (;;) {
    save({ step: 'look' });
    const look = await lookInto(ports);
    if (look.listening.includes(row.internal_port)) throw busy(row.internal_port);
    const next = nextStep(look, tried);
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

async function lookInto({ programs, clock, signal }: BringUpPorts): Promise<Look> {
  const late = clock.deadline(LOOK_WITHIN_MS);
  try {
    const { output } = await programs.run(lookArgv(), AbortSignal.any([signal, late]));
    return parseLook(output);
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
      'The image has no shell to install anything with',
    );
  }
}

async function waitFor(row: NotebookRow, ports: BringUpPorts): Promise<void> {
  const { programs, ask, clock, signal } = ports;
  const execId = row.exec_id ?? '';
  const untilMs = clock.monotonicMs() + READY_WITHIN_MS;
  for (;;) {
    signal.throwIfAborted();
    const port = ports.hostPort();
    if (port === null) throw new NotebookFailure('NotebookPortBusy', 'The pod has no such port');
    const alive = await programs.isAlive(execId);
    const answer = await ask.judge(port, row.token);
    if (alive && answer === 'good') return;
    if (!alive) throw await notReady('The notebook server ended', ports);
    if (answer === 'open') {
      await programs.end(execId);
      throw new NotebookFailure('NotebookNotReady', 'It lets in whoever comes, without its token');
    }
    if (clock.monotonicMs() > untilMs) {
      await programs.end(execId);
      throw await notReady('The notebook server did not answer in time', ports);
    }
    await clock.sleep(READY_POLL_MS, signal);
  }
}

async function notReady(what: string, { programs, clock, signal }: BringUpPorts) {
  const { output } = await programs.run(logArgv(), clock.deadline(LOG_WITHIN_MS, signal));
  const lines = lastLines(output);
  return new NotebookFailure('NotebookNotReady', lines === '' ? what : `${what}: ${lines}`);
}

function busy(port: number): NotebookFailure {
  return new NotebookFailure(
    'NotebookPortBusy',
    `Another program in the pod listens on port ${port}; end it or choose another port`,
  );
}

// MERGED agent/access/notebook/bring-up.ts: Whether a notebook server answers as it should: to its token, and to nobody without it.
const ANSWER_WITHIN_MS = 5_000;
const LOOPBACK = '127.0.0.1';

/** - `open`: it lets in whoever comes; such a server must not stay */
export type Answer = 'good' | 'open' | 'none';

export type AskNotebook = {
  /** Whether its token opens it. */
  answers(port: number, token: string): Promise<boolean>;
  /** The same, and whether nothing else does; servers note such tries in their logs. */
  judge(port: number, token: string): Promise<Answer>;
};

/** Asks at the host port that renters use. */
export function createAskNotebook(clock: Clock): AskNotebook {
  function statusOf(port: number, headers: Record<string, string>): Promise<number> {
    const signal = clock.deadline(ANSWER_WITHIN_MS);
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

  async function answers(port: number, token: string): Promise<boolean> {
    return (await statusOf(port, { authorization: `token ${token}` })) === 200;
  }

  return {
    answers,
    async judge(port, token) {
      if (!(await answers(port, token))) return 'none';
      const stranger = await statusOf(port, {});
      if (stranger === 401 || stranger === 403) return 'good';
      return stranger === 0 ? 'none' : 'open';
    },
  };
}
