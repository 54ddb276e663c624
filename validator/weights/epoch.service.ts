/** Computes weights once per epoch and stores them together with the outbox message that posts them. */
import { type Clock, createEventLoopYield } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { VERSION } from '#shared/runtime/version.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import type { TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import { enqueue } from '../store/outbox.store.ts';
import type { EpochRow, EvidenceStore } from '../store/tables.ts';
import { burnRecipient, createWeigher, type Weigher } from './compute-weights.ts';
import { cyclesOf, findCycle, newestCycles } from './cycle.store.ts';
import type { Window } from './cycle-set.ts';
import { deleteEpochsUpTo, insertEpoch, lastEpoch, newestBefore } from './epoch.store.ts';
import { nextLink, signEpoch } from './epoch-chain.ts';
import { epochRow, readInput, versionKeyOf } from './epoch-record.ts';
import type { Metagraph } from './metagraph.ts';
import type { WeightPolicy } from './weight-policy.ts';

export type Epochs = ReturnType<typeof createEpochs>;

export type EpochsOptions = {
  store: EvidenceStore;
  clock: Clock;
  log: Log;
  policy: WeightPolicy;
  signer: Signer;
  /** Keys whose epochs the chain continues. */
  trusted: readonly TrustedHotkey[];
  /** True if simulated GPUs earn points; only in a local marketplace. */
  embedded: boolean;
  metagraph: Metagraph;
  /** Length of a cycle in milliseconds. */
  cycleMs: number;
  /** Milliseconds between two epochs. */
  epochMs: number;
  /** Retention of epochs in days. Older epochs are deleted when a new epoch is stored, which records the deletion. */
  retentionDays: number;
};

const DAY_MS = 86_400_000;

export function createEpochs(options: EpochsOptions) {
  const { store, clock, log, policy, signer, embedded, trusted } = options;
  const validator = signer.hotkey;
  /** Newest cycle for which no weights could be posted, so that the failure is logged once and not in every pass. */
  let refusedCycle: number | null = null;

  /** Loads one cycle at a time: the cycles of a whole window do not fit in memory. */
  async function weigh(numbers: readonly number[]): Promise<Weigher> {
    const weigher = createWeigher(policy, { count: numbers.length, embedded });
    const breath = createEventLoopYield(clock);
    for await (const cycle of cyclesOf(store, numbers)) {
      weigher.add(cycle);
      await breath();
    }
    return weigher;
  }

  /**
   * Returns the window of the cycles. A short history counts as a whole window: otherwise its fees would be rewarded
   * repeatedly.
   */
  async function windowOf(numbers: readonly number[]): Promise<Window> {
    const from = await findCycle(store, numbers[0] ?? 0);
    const to = await findCycle(store, numbers.at(-1) ?? 0);
    const ends_ms = to?.ended_ms ?? 0;
    const shortestMs = (policy.window_cycles - 1) * options.cycleMs;
    return { ends_ms, length_ms: Math.max(ends_ms - (from?.ended_ms ?? ends_ms), shortestMs) };
  }

  async function compute(last: EpochRow | undefined, numbers: number[]): Promise<boolean> {
    const epoch = (last?.number ?? 0) + 1;
    const weigher = await weigh(numbers);
    const hotkeys = weigher.hotkeys();
    const { block, neurons } = await options.metagraph.read([...hotkeys]);
    const window = await windowOf(numbers);
    const burn = burnRecipient(policy, neurons);
    const involved = neurons.filter(({ hotkey }) => hotkey === burn || hotkeys.has(hotkey));
    const head = { epoch, validator, embedded, neurons: involved, window };
    const result = weigher.result(head);
    if (result === null) {
      log.error(
        { epoch, hotkey: policy.burn_hotkey },
        'burn recipient is not registered, no weights are posted: add this hotkey, or uid 0 if it is null, to the file of VALIDATOR_METAGRAPH, or set burn_hotkey of the weight policy to a registered hotkey',
      );
      return false;
    }
    const input = { ...head, cycles: numbers };
    const posted = { block, computedMs: clock.now(), versionKey: versionKeyOf(VERSION) };
    const pruned = await newestBefore(store, clock.now() - options.retentionDays * DAY_MS);
    const link = nextLink(last, pruned, trusted);
    if (link.previous === null && epoch > 1) log.warn({ epoch }, 'chain of epochs begins anew');
    const row = await signEpoch(epochRow({ input, policy, result, posted }, link), signer);
    await store.transaction().execute(async (tx) => {
      // If two processes compute the same number, the second insert fails and rolls back.
      await insertEpoch(tx, row);
      if (pruned !== null) await deleteEpochsUpTo(tx, pruned);
      const { payload_json: body, computed_ms: next_ms } = row;
      const message = {
        kind: 'set-weights',
        partitionKey: 'set-weights',
        subject: String(epoch),
      } as const;
      await enqueue(tx, { ...message, rank: 0, body, next_ms });
    });
    log.info({ epoch, result: result.resultHash, uids: result.uids.length }, 'weights computed');
    return true;
  }

  /** Newest cycle of an epoch. Undefined for a damaged row, which must not block the next epoch. */
  function newestIn(epoch: EpochRow): number | undefined {
    try {
      return readInput(epoch).cycles.at(-1);
    } catch (error) {
      log.error({ epoch: epoch.number, error: messageOf(error) }, 'last epoch is damaged');
      return undefined;
    }
  }

  return {
    /**
     * Computes an epoch if the last epoch is old enough and a cycle was closed since. Returns true if it stored an
     * epoch.
     */
    async computeDue(): Promise<boolean> {
      const last = await lastEpoch(store);
      const ageMs = clock.now() - (last?.computed_ms ?? Number.NEGATIVE_INFINITY);
      // A negative age means that the clock was set back; do not wait.
      if (ageMs >= 0 && ageMs < options.epochMs) return false;
      const numbers = await newestCycles(store, policy.window_cycles);
      const newest = numbers.at(-1);
      const used = last === undefined ? undefined : newestIn(last);
      if (newest === undefined || newest === used || newest === refusedCycle) return false;
      const computed = await compute(last, numbers);
      refusedCycle = computed ? null : newest;
      return computed;
    },
  };
}
