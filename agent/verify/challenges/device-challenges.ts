/**
 * The part of a challenge that the proof program answers: products on cards, and fills of cards, memory and disk. Its
 * sessions stay open until the fill was read, for a few minutes at most, or until the host is rented.
 */
import {
  type CardCommitment,
  type ChallengeRequest,
  type Filled,
  type FilledDevice,
  type FillReading,
  type OpenedRow,
  type OpenRequest,
  type ReadFill,
  toLayout,
} from '#shared/api/agent/challenges.ts';
import { leavesOf } from '#shared/proof-of-work/fill.ts';
import { type Purpose, roundSeeds, seedOf } from '#shared/proof-of-work/seed.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import {
  type Answer,
  type Fill,
  KEPT_MS,
  type ProductTask,
  type ProgramSession,
  type ProofProgram,
  type RoundRows,
} from './proof-program.ts';

const LOOK_MS = 1_000;

/** Session of a device, with its committed work. The seed of each round suffices to recompute its rows. */
type Device = {
  session: ProgramSession;
  product: { n: number; seeds: readonly Uint8Array[] } | null;
  fill: Fill | null;
};
type Sessions = { challengeId: string; devices: Map<string, Device>; ending: AbortController };
type Work = { product: ProductTask | null; fill: Fill | null };
const NOTHING = { done: null };

export type DeviceChallenges = ReturnType<typeof createDeviceChallenges>;

export function createDeviceChallenges({
  executorId,
  clock,
  program,
  isRented,
  stopping,
}: {
  executorId: string;
  clock: Clock;
  program: Pick<ProofProgram, 'image' | 'hasCards' | 'start' | 'removeLeftovers'>;
  /** True if a pod is on this host. */
  isRented(): boolean;
  stopping: AbortSignal;
}) {
  /** Sessions of the most recent challenge. */
  let kept: Sessions | null = null;

  async function end(sessions: Sessions): Promise<void> {
    if (kept === sessions) kept = null;
    sessions.ending.abort(new ApiError('conflict', 'The challenge has ended'));
    const devices = [...sessions.devices.values()];
    sessions.devices.clear();
    await Promise.all(devices.map(({ session }) => session.end()));
  }

  async function endDevice(sessions: Sessions, device: string): Promise<void> {
    const ended = sessions.devices.get(device);
    sessions.devices.delete(device);
    await ended?.session.end();
  }

  /** Ends the sessions when the host is rented, the agent stops, or no validator has read them for too long. */
  async function watch(sessions: Sessions, deadlineMs: number): Promise<void> {
    const until = clock.monotonicMs() + deadlineMs + KEPT_MS;
    const ended = AbortSignal.any([sessions.ending.signal, stopping]);
    while (clock.monotonicMs() < until && !isRented() && !ended.aborted) {
      await clock.sleep(LOOK_MS, ended).catch(() => undefined);
    }
    await end(sessions);
  }

  async function begin(challengeId: string, deadlineMs: number): Promise<Sessions> {
    if (kept !== null) await end(kept);
    await program.removeLeftovers();
    const sessions = { challengeId, devices: new Map(), ending: new AbortController() };
    kept = sessions;
    // A container that could not be removed ends by itself; the next challenge removes it.
    watch(sessions, deadlineMs).catch(() => undefined);
    return sessions;
  }

  /** Runs the work on a device. Keeps the session unless it has a fault. Rejects when the signal aborts. */
  async function runOn(
    sessions: Sessions,
    device: FilledDevice,
    { product, fill }: Work,
    run: { image: string; deadlineMs: number; signal: AbortSignal },
  ): Promise<Answer<Pick<CardCommitment, 'product' | 'memory'>>> {
    const { signal } = run;
    const started = await program.start(device, fill, run);
    if ('fault' in started) return started;
    const session = started.done;
    const state: Device = { session, fill, product: null };
    sessions.devices.set(device, state);
    const filled = fill === null ? NOTHING : await session.fill(fill, signal);
    const isNext = product !== null && 'done' in filled;
    const made = isNext ? await session.product(product, signal) : NOTHING;
    if ('fault' in filled || 'fault' in made) await endDevice(sessions, device);
    if ('fault' in filled) return filled;
    if ('fault' in made) return made;
    if (product !== null && made.done !== null) {
      const roots = made.done.roots.map((root) => Buffer.from(root, 'hex'));
      state.product = { n: product.n, seeds: roundSeeds(product.seed, roots) };
    }
    return { done: { product: made.done, memory: filled.done } };
  }

  function deviceOf(challengeId: string, device: string): { sessions: Sessions; state: Device } {
    const state = kept?.challengeId === challengeId ? kept.devices.get(device) : undefined;
    if (kept === null || state === undefined) throw challengeNotFound();
    return { sessions: kept, state };
  }

  return {
    /** Starts the sessions of a challenge, after those of the one before have ended. Null without the program. */
    async begin(request: ChallengeRequest, signal: AbortSignal) {
      const image = await program.image();
      if (image === null) return null;
      const { nonce, challenge_id: challengeId, deadline_ms: deadlineMs } = request;
      const sessions = await begin(challengeId, deadlineMs);
      const run = { image, deadlineMs, signal: AbortSignal.any([signal, sessions.ending.signal]) };
      const seedFor = (device: string, purpose: Purpose) =>
        seedOf({ nonce, executorId, device, purpose });

      return {
        /** Null if the challenge names no card or the host has none. Runs all cards at the same time. */
        async cards(): Promise<CardCommitment[] | null> {
          const { gpu } = request;
          if (gpu === null || !program.hasCards) return null;
          const running = gpu.cards.map(async ({ uuid, memory }): Promise<CardCommitment> => {
            const product = { ...gpu.product, seed: seedFor(uuid, 'product') };
            const seed = seedFor(uuid, 'memory');
            const fill = memory && { layout: toLayout(memory), seed };
            const answer = await runOn(sessions, uuid, { product, fill }, run);
            if ('done' in answer) return { uuid, fault: null, ...answer.done };
            return { uuid, fault: answer.fault, product: null, memory: null };
          });
          await Promise.allSettled(running);
          return Promise.all(running);
        },

        /** Throws 409 if the device cannot be filled. */
        async host(device: 'memory' | 'disk'): Promise<Filled | null> {
          const asked = request[device];
          if (asked === null) return null;
          const fill = { layout: toLayout(asked), seed: seedFor(device, device) };
          const answer = await runOn(sessions, device, { product: null, fill }, run);
          return doneOf(answer, device).memory;
        },

        end: () => end(sessions),
      };
    },

    /** Opens rows of a card's product. Throws 404 for an unknown challenge, 422 for a row that does not exist. */
    async rows(
      id: string,
      card: string,
      rows: OpenRequest['rows'],
      signal: AbortSignal,
    ): Promise<OpenedRow[]> {
      const { sessions, state } = deviceOf(id, card);
      const { n, seeds } = state.product ?? { n: 0, seeds: [] };
      requireRows(rows, { n, rounds: seeds.length });
      const rounds = seeds.flatMap((seed, round): RoundRows[] => {
        const indices = rows.filter((row) => row.round === round).map(({ index }) => index);
        return indices.length === 0 ? [] : [{ round, seed, indices }];
      });
      const opened = await state.session.rows(rounds, signal);
      if (state.fill === null) await endDevice(sessions, card);
      return doneOf(opened, card);
    },

    /** Reads a fill. Throws 404 for an unknown challenge, 422 for a leaf that does not exist. */
    async read(
      id: string,
      { device, walk, leaves: asked }: FillReading,
      signal: AbortSignal,
    ): Promise<ReadFill> {
      const { sessions, state } = deviceOf(id, device);
      const count = state.fill === null ? 0 : leavesOf(state.fill.layout);
      const beyond = asked.find((index) => index >= count);
      if (beyond !== undefined) {
        throw new ApiError('validation_error', `There is no leaf ${beyond}`);
      }
      const { session } = state;
      const states = walk === null ? [] : doneOf(await session.walk(walk, signal), device);
      if (asked.length === 0) return { states, leaves: [] };
      const leaves = await session.leaves(asked, signal);
      await endDevice(sessions, device);
      return { states, leaves: doneOf(leaves, device) };
    },
  };
}

export const challengeNotFound = (): ApiError =>
  new ApiError('not_found', 'There is no such challenge, or it is no longer retained', {
    hint: 'Make a new challenge.',
  });

/** Throws 422 unless all rows exist. */
export function requireRows(
  rows: OpenRequest['rows'],
  { n, rounds }: { n: number; rounds: number },
): void {
  for (const { round, index } of rows) {
    if (round < rounds && index < n) continue;
    throw new ApiError('validation_error', `There is no row ${index} of round ${round}`);
  }
}

function doneOf<T>(answer: Answer<T>, device: string): T {
  if ('done' in answer) return answer.done;
  const { code, detail } = answer.fault;
  throw new ApiError('conflict', `${device} did not prove its work: ${code}: ${detail}`);
}
