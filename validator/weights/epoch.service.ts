/** Computes weights once per epoch and stores them, and what is to be posted, before anything is sent (validator reference 8.3). */
import { type Clock, createBreath } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { VERSION } from '#shared/runtime/version.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import type { TrustedHotkey } from '../keys/trusted-hotkeys.ts';
import { enqueue } from '../store/outbox.store.ts';
import type { EpochRow, EvidenceStore } from '../store/tables.ts';
import { createWeigher, type Weigher } from './compute-weights.ts';
import { cyclesOf, newestCycles } from './cycle.store.ts';
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
  /** Whose epochs are gone on from. */
  trusted: readonly TrustedHotkey[];
  /** Whether simulated GPUs score: in a marketplace on one's own machine only. */
  embedded: boolean;
  metagraph: Metagraph;
  /** Milliseconds from one set of weights to the next. */
  epochMs: number;
  /** What is older goes when another one comes, which says so. */
  retentionDays: number;
};

const DAY_MS = 86_400_000;

export function createEpochs(options: EpochsOptions) {
  const { store, clock, log, policy, signer, embedded, trusted } = options;
  const validator = signer.hotkey;
  /** So that what cannot be posted is said once for each cycle, not in every pass. */
  let refusedCycle: number | null = null;

  /** A cycle at a time: those of a whole window are large. */
  async function weigh(numbers: readonly number[]): Promise<Weigher> {
    const weigher = createWeigher(policy, { count: numbers.length, embedded });
    const breath = createBreath(clock);
    for await (const cycle of cyclesOf(store, numbers)) {
      weigher.add(cycle);
      await breath();
    }
    return weigher;
  }

  async function compute(last: EpochRow | undefined, numbers: number[]): Promise<boolean> {
    const epoch = (last?.number ?? 0) + 1;
    const weigher = await weigh(numbers);
    const hotkeys = weigher.hotkeys();
    const { block, neurons } = await options.metagraph.read([...hotkeys]);
    const burn = policy.burn_hotkey ?? validator;
    const involved = neurons.filter(({ hotkey }) => hotkey === burn || hotkeys.has(hotkey));
    const head = { epoch, validator, embedded, neurons: involved };
    const result = weigher.result(head);
    if (result === null) {
      log.error({ epoch }, 'the burn recipient is not registered: no weights are posted');
      return false;
    }
    const input = { ...head, cycles: numbers };
    const posted = { block, computedMs: clock.now(), versionKey: versionKeyOf(VERSION) };
    const pruned = await newestBefore(store, clock.now() - options.retentionDays * DAY_MS);
    const link = nextLink(last, pruned, trusted);
    if (link.previous === null && epoch > 1) log.warn({ epoch }, 'the chain of epochs begins anew');
    const row = await signEpoch(epochRow({ input, policy, result, posted }, link), signer);
    await store.transaction().execute(async (tx) => {
      // Of two processes that come to the same number one is refused, with all that it did.
      await insertEpoch(tx, row);
      if (pruned !== null) await deleteEpochsUpTo(tx, pruned);
      const { payload_json: body, computed_ms: next_ms } = row;
      const told = {
        kind: 'set-weights',
        partitionKey: 'set-weights',
        subject: String(epoch),
      } as const;
      await enqueue(tx, { ...told, rank: 0, body, next_ms });
    });
    log.info({ epoch, result: result.resultHash, uids: result.uids.length }, 'weights computed');
    return true;
  }

  /** Undefined, too, for a row that was altered: it is to keep nobody from the next weights. */
  function newestIn(epoch: EpochRow): number | undefined {
    try {
      return readInput(epoch).cycles.at(-1);
    } catch (error) {
      log.error({ epoch: epoch.number, error: messageOf(error) }, 'the last weights are damaged');
      return undefined;
    }
  }

  return {
    /** When the last one is old enough and a cycle was closed since. Resolves with whether there are new weights. */
    async computeDue(): Promise<boolean> {
      const last = await lastEpoch(store);
      const ageMs = clock.now() - (last?.computed_ms ?? Number.NEGATIVE_INFINITY);
      // One of the future is no reason to wait: the clock was set back.
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
