/** Epochs for operators: the signed texts, and the weights with those of the previous epoch. */
import type {
  EpochPage,
  EpochsQuery,
  EpochWeights,
  SignedEpoch,
  WeightsQuery,
} from '#shared/api/central/epoch-records.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { EpochRow, EvidenceStore } from '../store/tables.ts';
import { epochsBefore, findEpoch } from '../weights/epoch.store.ts';
import {
  claimOf,
  EPOCH_SIGNED_AS,
  type SignedEpoch as EpochToSign,
  epochIdOf,
} from '../weights/epoch-chain.ts';
import { readInput, readPayload, type StoredInput } from '../weights/epoch-record.ts';
import { notStored } from './evidence-records.ts';
import { pageOf } from './page.ts';

export type EpochRecords = ReturnType<typeof createEpochRecords>;

export function createEpochRecords(store: EvidenceStore) {
  async function requireEpoch(number: number): Promise<EpochRow> {
    const row = await findEpoch(store, number);
    if (row === undefined) throw notStored(`epoch ${number}`);
    return row;
  }

  return {
    requireEpoch,

    async epochs({ before, limit }: EpochsQuery): Promise<EpochPage> {
      const rows = await epochsBefore(store, before ?? Number.MAX_SAFE_INTEGER, limit + 1);
      const { items, next } = pageOf(rows, limit, ({ number }) => number);
      return { epochs: items.map(rowOf), next };
    },

    /** Throws `not_found` for an epoch that is not stored. */
    async epoch(number: number): Promise<SignedEpoch> {
      const row = await requireEpoch(number);
      const input = inputOf(row);
      return {
        ...rowOf(row),
        validator: input?.validator ?? null,
        signed_as: EPOCH_SIGNED_AS,
        claim: claimOf(row),
        signature: row.signature,
        payload: row.payload_json,
        policy: row.policy_json,
        cycles: input?.cycles ?? [],
      };
    },

    /**
     * Throws `not_found` for an epoch that is not stored. For a damaged epoch, throws an error that names the epoch.
     */
    async weights(number: number, { after, limit }: WeightsQuery): Promise<EpochWeights> {
      const row = await requireEpoch(number);
      const before = await findEpoch(store, number - 1);
      const posted = weightsIn(row);
      const former = before === undefined ? null : weightsIn(before);
      const uids = [...new Set([...posted.keys(), ...(former?.keys() ?? [])])];
      const all = uids
        .sort((a, b) => a - b)
        .map((uid) => ({
          uid,
          weight: posted.get(uid) ?? 0,
          previous_weight: former === null ? null : (former.get(uid) ?? 0),
        }));
      const hotkeys = new Map([...neuronsOf(before), ...neuronsOf(row)]);
      const rest = all.filter(({ uid }) => uid > (after ?? -1));
      const { items, next } = pageOf(rest, limit, ({ uid }) => uid);
      return {
        epoch: number,
        previous_epoch: before?.number ?? null,
        total: all.length,
        changed: all.filter(({ weight, previous_weight: was }) => was !== null && was !== weight)
          .length,
        weights: items.map((each) => ({ ...each, hotkey: hotkeys.get(each.uid) ?? null })),
        next,
      };
    },
  };
}

function rowOf(row: EpochToSign & Pick<EpochRow, 'state'>): EpochPage['epochs'][number] {
  const { number, computed_ms, state, previous, result_hash } = row;
  return {
    number,
    state,
    previous,
    result_hash,
    id: epochIdOf(row),
    computed_at: naiveUtc(computed_ms),
  };
}

/** Returns the weights by uid. */
function weightsIn(row: EpochRow): ReadonlyMap<number, number> {
  const { uids, weights } = readPayload(row);
  return new Map(uids.map((uid, at) => [uid, weights[at] ?? 0]));
}

/** Returns the input of the epoch; null if the row was altered or is damaged. */
function inputOf(row: EpochRow): StoredInput | null {
  try {
    return readInput(row);
  } catch {
    return null;
  }
}

function neuronsOf(row: EpochRow | undefined): [uid: number, hotkey: string][] {
  const input = row === undefined ? null : inputOf(row);
  return (input?.neurons ?? []).map(({ uid, hotkey }) => [uid, hotkey]);
}
