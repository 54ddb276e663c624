/** Waits up to 15 minutes until agents serve and their nodes are verified. Fails earlier if an agent does not start. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Progress } from '#shared/runtime/progress.ts';
import type { SupervisedChild } from '#shared/runtime/supervised-child.ts';

/** State of a starting agent. */
export type StartingAgent = {
  name: string;
  isVerified: boolean;
  /** Why the validator has not verified the node; empty before its first verdict. */
  reasons: readonly string[];
};

/** Time limit for all agents to serve and be verified. The first start on a slow disk takes some minutes. */
const START_LIMIT_MS = 15 * 60_000;
/** Interval between two lines that state why nodes are not verified. */
const REASONS_EVERY_MS = 30_000;
const POLL_MS = 100;

/** Returns why the start has failed; null while it may still succeed. */
export function startProblem(
  children: readonly Pick<SupervisedChild, 'startFailure'>[],
  agents: readonly StartingAgent[],
  waitedMs: number,
): Error | null {
  for (const child of children) {
    const failure = child.startFailure();
    if (failure !== null) return failure;
  }
  if (waitedMs <= START_LIMIT_MS) return null;
  const limit = `${START_LIMIT_MS / 60_000} minutes`;
  return new Error(`the start took longer than ${limit}: ${pendingReasons(agents)}`);
}

/** Describes why nodes are not verified, one clause for each. */
export function pendingReasons(agents: readonly StartingAgent[]): string {
  return agents
    .filter(({ isVerified }) => !isVerified)
    .map(({ name, reasons }) => `${name}: ${reasons.join(', ') || 'no verdict yet'}`)
    .join('; ');
}

export type AwaitAgentsOptions = {
  children: readonly SupervisedChild[];
  /** Reads the current states. */
  states(): Promise<StartingAgent[]>;
  clock: Clock;
  progress: Progress;
  signal: AbortSignal;
};

/** Resolves when every node is verified. Rejects on `signal`, or with the reason if the start fails. */
export async function awaitAgents(options: AwaitAgentsOptions): Promise<void> {
  const { children, states, clock, progress, signal } = options;
  const beganMs = clock.monotonicMs();
  let notedMs = beganMs;
  let noted = '';
  for (;;) {
    const agents = await states();
    const done = agents.filter(({ isVerified }) => isVerified).length;
    progress.at(done, agents.length);
    if (done === agents.length && children.every((child) => child.hasServed())) return;
    const nowMs = clock.monotonicMs();
    const problem = startProblem(children, agents, nowMs - beganMs);
    if (problem !== null) throw problem;
    const reasons = pendingReasons(agents);
    if (nowMs - notedMs >= REASONS_EVERY_MS && reasons !== noted) {
      progress.note(`still waiting: ${reasons}`);
      [notedMs, noted] = [nowMs, reasons];
    }
    await clock.sleep(POLL_MS, signal);
  }
}
