/**
 * The agent's half of its own update: looks for a signed manifest, gets the new version ready, and hands over to the
 * switcher (validator reference 4.3). A process cannot replace itself and live to judge what came of it, and a unit that
 * always runs would be one more thing to update: so the agent starts the switcher, a short-lived process of the version
 * that runs now, which is known to work. The service manager, here the engine, starts it again when it is killed; it
 * goes when the row rests. Pods are containers of the engine's, and in nobody's way.
 */
import type { UpdateState, UpdateStatus } from '#shared/api/agent/update-status.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import { VERSION } from '#shared/runtime/version.ts';
import type { TrustedKey } from '#shared/signing/request-verifier.ts';
import { SignedDigest } from '#shared/updates/update-manifest.ts';
import type { Installation } from './installation.ts';
import { judgeManifest, REFUSALS } from './update.rules.ts';
import {
  moved,
  type PodMark,
  RESTING,
  SWITCHERS,
  type Target,
  type UpdateRow,
} from './update.state.ts';
import { statusOf } from './update.status.ts';
import type { UpdateStore } from './update.store.ts';

/** Why it stays where it is, for now. */
export type Hold = { reason: string; message: string };

export type UpdatePorts = {
  /** AGENT_UPDATE_IMAGE. */
  image: string;
  platform: string;
  keys: readonly TrustedKey[];
  installation: Installation;
  /** What the marketplace says that agents are to run, not believed yet. Rejects when there is no answer. */
  readManifest(): Promise<unknown>;
  /** Between two looks; up to a tenth more by chance. */
  intervalMs: number;
  /** The provider's word that it is not to be updated now, and why; null: go on. */
  heldBy(): string | null;
};

export type UpdateServiceOptions = UpdatePorts & {
  clock: Clock;
  random: Random;
  log: Log;
  executorId: string;
  store: UpdateStore;
  /** What runs that an update would cut off; null: nothing. */
  busyWith(): string | null;
  /** Pods whose containers run. */
  runningPods(): PodMark[];
  /** Whether a container with all GPUs starts here now; null: it does. */
  tryContainer(): Promise<Hold | null>;
};

export type UpdateService = ReturnType<typeof createUpdateService>;

/** How often what is due is looked at. */
export const UPDATE_PASS_MS = 1_000;
/** What ends by itself and costs nothing to look at. */
const PASSING = ['BUSY', 'MAINTENANCE_HOLD'];
/** After a step that failed. */
const AGAIN_MS = 60_000;
const FETCH_MS = 15 * 60_000;
const JITTER = 10;
const MAX_MESSAGE_CHARS = 1_000;

export function createUpdateService(options: UpdateServiceOptions) {
  const { clock, random, log, store, installation } = options;
  let running: readonly string[] | null = null;
  let againAtMs = 0;

  const steps: Partial<Record<UpdateState, (target: Target) => Promise<UpdateRow | Hold>>> = {
    VERIFIED: async () => hold() ?? go('PREFLIGHT'),
    async PREFLIGHT() {
      const problem = hold() ?? (await roomProblem()) ?? (await options.tryContainer());
      return problem ?? go('PULLED');
    },
    async PULLED(target) {
      await installation.fetch(target, clock.deadline(FETCH_MS));
      return go('STAGED');
    },
    async STAGED(target) {
      const early = hold();
      if (early !== null) return early;
      await installation.stage(target);
      const passage = {
        ...(await installation.passage()),
        pods: options.runningPods(),
        back: null,
      };
      // Looked at last: between this and the hand-over nothing is waited for.
      return hold() ?? go('SWITCHING', { passage });
    },
  };

  function go(to: UpdateState, change: Partial<UpdateRow> = {}): UpdateRow {
    return moved(store.get(), to, { since_ms: clock.now(), ...change });
  }

  function hold(): Hold | null {
    const held = options.heldBy();
    if (held !== null) return { reason: 'MAINTENANCE_HOLD', message: held };
    const work = options.busyWith();
    return work === null ? null : { reason: 'BUSY', message: work };
  }

  async function roomProblem(): Promise<Hold | null> {
    if (await installation.hasRoom()) return null;
    return { reason: 'NO_SPACE', message: 'the disk has not twice the room that the agent takes' };
  }

  /** Takes steps until one has to wait, or the rest is the switcher's. */
  async function proceed(): Promise<void> {
    for (;;) {
      if (clock.monotonicMs() < againAtMs) return;
      const row = store.get();
      if (SWITCHERS.includes(row.state)) return startSwitcher();
      const step = steps[row.state];
      if (step === undefined || row.target === null) return;
      const next = await step(row.target).catch(
        (error: unknown): Hold => ({
          reason: 'STEP_FAILED',
          message: messageOf(error).slice(0, MAX_MESSAGE_CHARS),
        }),
      );
      if (!('state' in next)) {
        // What was found by trying is not tried again at once.
        if (!PASSING.includes(next.reason)) againAtMs = clock.monotonicMs() + AGAIN_MS;
        return note(next);
      }
      store.put(next);
      log.info({ state: next.state, target: next.target }, 'update goes on');
    }
  }

  /** Whether it runs is asked at every pass; the row is its own to write. */
  async function startSwitcher(): Promise<void> {
    await installation.startSwitcher().catch((error: unknown) => {
      againAtMs = clock.monotonicMs() + AGAIN_MS;
      throw error;
    });
  }

  /** False, and why is noted, where the agent does not run as it was said. */
  async function seesItself(isSwitching: boolean): Promise<boolean> {
    try {
      running = await installation.running();
      return true;
    } catch (error) {
      againAtMs = clock.monotonicMs() + AGAIN_MS;
      const message = messageOf(error).slice(0, MAX_MESSAGE_CHARS);
      if (!isSwitching) note({ reason: 'INSTALLATION_UNSUITABLE', message });
      return false;
    }
  }

  /** Kept once, not at every pass. */
  function note({ reason, message }: Hold): void {
    const row = store.get();
    if (row.reason === reason && row.message === message) return;
    store.put({ ...row, reason, message });
    log.info({ reason, message, state: row.state }, 'update waits');
  }

  /** The time of the look and what came of it are written together: a kill in between loses neither. */
  async function look(): Promise<void> {
    const nowMs = clock.now();
    const jitterMs = random.int(Math.ceil(options.intervalMs / JITTER) + 1);
    const checked = { last_check_ms: nowMs, next_check_ms: nowMs + options.intervalMs + jitterMs };
    const answer = await options.readManifest().catch((error: unknown) => {
      log.info({ detail: messageOf(error) }, 'no manifest of updates');
      return null;
    });
    const row = { ...store.get(), ...checked };
    store.put(answer === null ? row : await followed(row, answer));
  }

  async function followed(row: UpdateRow, answer: unknown): Promise<UpdateRow> {
    const ruling = judgeManifest(answer, {
      ...{ keys: options.keys, nowMs: clock.now(), image: options.image, agentVersion: VERSION },
      ...{ executorId: options.executorId, platform: options.platform },
      ...{ running: running ?? [], row },
    });
    const isResting = RESTING.includes(row.state);
    if (ruling.outcome === 'refused') {
      const { reason } = ruling;
      // What was taken is gone on with, and why it went back is not forgotten.
      const isTold = isResting && row.state !== 'ROLLED_BACK';
      return isTold ? { ...row, reason, message: REFUSALS[reason] } : row;
    }
    const { target } = ruling;
    const taken = { ...row, sequence: target.sequence, digest: target.digest };
    const isKnown = row.target?.digest === target.digest;
    if (ruling.outcome === 'take' && isKnown && !isResting) return taken;
    if (!isResting) await installation.unstage();
    againAtMs = 0;
    const fresh = { since_ms: clock.now(), attempts: 0, denied_until_ms: 0, passage: null };
    if (ruling.outcome === 'take') {
      const attempts = isKnown ? row.attempts : 0;
      const signed = SignedDigest.parse(answer);
      return moved(taken, 'VERIFIED', { ...fresh, target, signed, attempts });
    }
    const hasRested = row.state === 'IDLE' || (row.state === 'COMMITTED' && isKnown);
    if (hasRested) return { ...taken, reason: null, message: '' };
    return moved(taken, 'IDLE', { ...fresh, target: null, signed: null });
  }

  return {
    /** Looks for a manifest when that is due, and goes on with what was taken. */
    async runOnce(): Promise<void> {
      const { state, next_check_ms: nextMs } = store.get();
      const isSwitching = SWITCHERS.includes(state);
      const inMs = nextMs - clock.now();
      // Of a clock that was set back the time of the next look may lie far ahead.
      const isDue = !isSwitching && (inMs <= 0 || inMs > 2 * options.intervalMs);
      if (running === null && clock.monotonicMs() < againAtMs) return;
      if ((isDue || running === null) && !(await seesItself(isSwitching))) return;
      if (isDue) await look();
      await proceed();
    },
    status: (): UpdateStatus => statusOf(store.get(), installation.kind, running),
  };
}
