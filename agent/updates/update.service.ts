/**
 * The agent's half of an update: checks for a signed manifest, prepares the new version, and starts the switcher. A
 * process cannot replace itself and monitor the result, so the switcher is a separate, short-lived process of the
 * running version, which is known to work. Its service manager (Docker or systemd) restarts it if it is killed. Pods
 * are containers of the engine and keep running.
 */
import type { UpdateState, UpdateStatus } from '#shared/api/agent/update-status.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import { VERSION } from '#shared/runtime/version.ts';
import type { TrustedKey } from '#shared/signing/request-verifier.ts';
import type { RootKeys } from '#shared/updates/root-key-set.ts';
import { SignedDigest } from '#shared/updates/update-manifest.ts';
import type { Installation } from './installation.ts';
import type { Trust } from './key-trust.ts';
import { judgeAnswer, REFUSALS } from './manifest-rules.ts';
import {
  type PodMark,
  RESTING_STATES,
  SWITCHER_STATES,
  statusOf,
  type Target,
  transition,
  type UpdateRow,
} from './update.state.ts';
import type { UpdateStore } from './update.store.ts';

/** Why an update does not proceed now. */
export type WaitReason = { reason: string; message: string };

export type UpdatePorts = {
  /** AGENT_UPDATE_IMAGE. */
  image: string;
  platform: string;
  keys: readonly TrustedKey[];
  /** AGENT_ROOT_KEYS; null if it is not set. */
  root: RootKeys | null;
  /** Called after another key set was stored. */
  trustChanged(trust: Trust | null): void;
  installation: Installation;
  /** Pulls the image of a version and verifies its digest. Aborted by the signal. */
  fetchImage(target: Target, signal: AbortSignal): Promise<void>;
  /** Reads the marketplace's answer, which is not verified yet. Rejects without an answer. */
  readManifest(): Promise<unknown>;
  /** Time between two checks; the service adds a random delay of up to a tenth. */
  intervalMs: number;
  /** Why the provider has paused updates; null if they are not paused. */
  maintenanceReason(): string | null;
};

export type UpdateServiceOptions = UpdatePorts & {
  clock: Clock;
  random: Random;
  log: Log;
  executorId: string;
  store: UpdateStore;
  /** Returns the work that an update would interrupt; null if there is none. */
  workInProgress(): string | null;
  runningPods(): PodMark[];
  /** Starts a container with all GPUs. Resolves with null if it started. */
  tryContainer(): Promise<WaitReason | null>;
};

export type UpdateService = ReturnType<typeof createUpdateService>;

/** Interval of `runOnce`. */
export const UPDATE_PASS_MS = 1_000;
/** Reasons that pass without the agent's action and are cheap to check in every pass. */
const CHEAP_REASONS = ['BUSY', 'MAINTENANCE_HOLD'];
/** Pause after a failed step. */
const RETRY_MS = 60_000;
const FETCH_MS = 15 * 60_000;
/** Divisor of the interval; the result is the maximum random delay. */
const JITTER = 10;
const MAX_MESSAGE_CHARS = 1_000;

export function createUpdateService(options: UpdateServiceOptions) {
  const { clock, random, log, store, installation } = options;
  let running: readonly string[] | null = null;
  let retryAtMs = 0;

  const steps: Partial<Record<UpdateState, (target: Target) => Promise<UpdateRow | WaitReason>>> = {
    VERIFIED: async () => waitReason() ?? to('PREFLIGHT'),
    async PREFLIGHT() {
      const problem = waitReason() ?? (await spaceProblem()) ?? (await options.tryContainer());
      return problem ?? to('PULLED');
    },
    async PULLED(target) {
      if (!installation.has(target)) {
        await options.fetchImage(target, clock.deadline(FETCH_MS));
      }
      return to('STAGED');
    },
    async STAGED(target) {
      const wait = waitReason();
      if (wait !== null) return wait;
      await installation.stage(target);
      const passage = {
        ...(await installation.rollbackPoint()),
        pods: options.runningPods(),
        back: null,
      };
      // Checked again here: nothing is awaited between this check and the transition.
      return waitReason() ?? to('SWITCHING', { passage });
    },
  };

  function to(state: UpdateState, change: Partial<UpdateRow> = {}): UpdateRow {
    return transition(store.get(), state, { since_ms: clock.now(), ...change });
  }

  function waitReason(): WaitReason | null {
    const maintenance = options.maintenanceReason();
    if (maintenance !== null) return { reason: 'MAINTENANCE_HOLD', message: maintenance };
    const work = options.workInProgress();
    return work === null ? null : { reason: 'BUSY', message: work };
  }

  async function spaceProblem(): Promise<WaitReason | null> {
    if (await installation.hasSpace()) return null;
    return { reason: 'NO_SPACE', message: 'the disk has less than twice the space of the agent' };
  }

  /** Takes steps until one has to wait or the switcher owns the row. */
  async function proceed(): Promise<void> {
    for (;;) {
      if (clock.monotonicMs() < retryAtMs) return;
      const row = store.get();
      if (SWITCHER_STATES.includes(row.state)) return startSwitcher();
      const step = steps[row.state];
      if (step === undefined || row.target === null) return;
      const next = await step(row.target).catch(
        (error: unknown): WaitReason => ({
          reason: 'STEP_FAILED',
          message: messageOf(error).slice(0, MAX_MESSAGE_CHARS),
        }),
      );
      if (!('state' in next)) {
        // Expensive checks are not repeated at once.
        if (!CHEAP_REASONS.includes(next.reason)) retryAtMs = clock.monotonicMs() + RETRY_MS;
        return recordWait(next);
      }
      store.put(next);
      log.info({ state: next.state, target: next.target }, 'update proceeds');
    }
  }

  /** Starts the switcher. Called in every pass, so that one that ended is started again. */
  async function startSwitcher(): Promise<void> {
    await installation.startSwitcher().catch((error: unknown) => {
      retryAtMs = clock.monotonicMs() + RETRY_MS;
      throw error;
    });
  }

  /** Returns false and records the reason if the agent does not run in the configured installation. */
  async function readRunning(isSwitching: boolean): Promise<boolean> {
    try {
      running = await installation.running();
      return true;
    } catch (error) {
      retryAtMs = clock.monotonicMs() + RETRY_MS;
      const message = messageOf(error).slice(0, MAX_MESSAGE_CHARS);
      if (!isSwitching) recordWait({ reason: 'INSTALLATION_UNSUITABLE', message });
      return false;
    }
  }

  /** Records why the update waits; writes the row only if the reason changed. */
  function recordWait({ reason, message }: WaitReason): void {
    const row = store.get();
    if (row.reason === reason && row.message === message) return;
    store.put({ ...row, reason, message });
    log.info({ reason, message, state: row.state }, 'update waits');
  }

  /** Writes the time of the check and its result together, so that a kill loses both or neither. */
  async function checkManifest(): Promise<void> {
    const nowMs = clock.now();
    const jitterMs = random.int(Math.ceil(options.intervalMs / JITTER) + 1);
    const checked = { last_check_ms: nowMs, next_check_ms: nowMs + options.intervalMs + jitterMs };
    const answer = await options.readManifest().catch((error: unknown) => {
      log.info({ detail: messageOf(error) }, 'update manifest unavailable');
      return null;
    });
    const row = { ...store.get(), ...checked };
    const next = answer === null ? row : await rowAfter(row, answer);
    store.put(next);
    if (next.trust === row.trust) return;
    log.info({ sequence: next.trust?.signed.key_set.sequence }, 'new key set accepted');
    options.trustChanged(next.trust);
  }

  async function rowAfter(before: UpdateRow, answer: unknown): Promise<UpdateRow> {
    const { ruling, trust, isReset } = judgeAnswer(answer, {
      keys: options.keys,
      root: options.root,
      nowMs: clock.now(),
      image: options.image,
      agentVersion: VERSION,
      executorId: options.executorId,
      platform: options.platform,
      running: running ?? [],
      row: before,
    });
    const row = isReset ? await forget({ ...before, trust }) : { ...before, trust };
    const isResting = RESTING_STATES.includes(row.state);
    if (ruling.outcome === 'refused') {
      const { reason } = ruling;
      // A refusal does not stop an update in progress, and does not replace the reason of a rollback.
      const isReported = isResting && row.state !== 'ROLLED_BACK';
      return isReported ? { ...row, reason, message: REFUSALS[reason] } : row;
    }
    const { target } = ruling;
    const accepted = { ...row, sequence: target.sequence, digest: target.digest };
    const isKnown = row.target?.digest === target.digest;
    if (ruling.outcome === 'accepted' && isKnown && !isResting) return accepted;
    if (!isResting) await installation.unstage();
    retryAtMs = 0;
    const fresh = { since_ms: clock.now(), attempts: 0, denied_until_ms: 0, passage: null };
    if (ruling.outcome === 'accepted') {
      const attempts = isKnown ? row.attempts : 0;
      const signed = SignedDigest.parse(answer);
      return transition(accepted, 'VERIFIED', { ...fresh, target, signed, attempts });
    }
    const hasRested = row.state === 'IDLE' || (row.state === 'COMMITTED' && isKnown);
    if (hasRested) return { ...accepted, reason: null, message: '' };
    return transition(accepted, 'IDLE', { ...fresh, target: null, signed: null });
  }

  /**
   * Returns the row without what manifests under the key set before have set: the sequence, and an update in progress,
   * because a thief may have signed both.
   */
  async function forget(row: UpdateRow): Promise<UpdateRow> {
    const forgotten = { ...row, sequence: 0, digest: null };
    if (RESTING_STATES.includes(row.state)) return forgotten;
    await installation.unstage();
    const change = { target: null, signed: null, passage: null, attempts: 0, denied_until_ms: 0 };
    return transition(forgotten, 'IDLE', { ...change, since_ms: clock.now() });
  }

  return {
    /** Checks for a manifest when that is due, and continues an update in progress. */
    async runOnce(): Promise<void> {
      const { state, next_check_ms: nextMs } = store.get();
      const isSwitching = SWITCHER_STATES.includes(state);
      const inMs = nextMs - clock.now();
      // If the clock was set back, the next check may be far in the future.
      const isDue = !isSwitching && (inMs <= 0 || inMs > 2 * options.intervalMs);
      if (running === null && clock.monotonicMs() < retryAtMs) return;
      if ((isDue || running === null) && !(await readRunning(isSwitching))) return;
      if (isDue) await checkManifest();
      await proceed();
    },
    status: (): UpdateStatus => statusOf(store.get(), 'image-digest', running),
  };
}
