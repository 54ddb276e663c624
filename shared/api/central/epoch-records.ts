/** Epochs with their weights, and the explanation of a weight. */
import { z } from 'zod';
import { described } from '../described.ts';
import { queryNumber } from '../query-number.ts';
import {
  DEFAULT_ROWS,
  ExecutorParams,
  MAX_NUMBER,
  MAX_PAGE,
  MAX_VERDICTS,
  MAX_WEIGHTS,
  NEXT,
  NumberParams,
  olderThan,
  Sha256,
  Share,
  SIGNED_TEXT,
  Signature,
  Text,
  Time,
} from './record-parts.ts';

export const EpochsQuery = z.object(olderThan('epochs')).meta({ example: { limit: 20 } });
export type EpochsQuery = z.output<typeof EpochsQuery>;

const EPOCH_STATE =
  '`queued`: not posted yet; `confirmed`: this central API publishes the weights; `differs`: it publishes others; `refused`: not sent any more.';
const EPOCH_ROW = described(
  {
    number: z.int(),
    id: Sha256,
    computed_at: Time,
    state: z.enum(['queued', 'confirmed', 'differs', 'refused']),
    previous: Sha256.nullable(),
    result_hash: Sha256,
  },
  {
    number: 'Number of the epoch.',
    id: 'SHA-256 of `claim` as UTF-8, hex.',
    computed_at: 'Time at which the weights were computed (UTC).',
    state: EPOCH_STATE,
    previous: 'Id of the epoch before; null at the beginning of a chain.',
    result_hash: 'SHA-256 of the weights with the hashes of input and policy, hex.',
  },
);

export const EpochPage = z
  .object(
    described(
      { epochs: z.array(z.object(EPOCH_ROW)).max(MAX_PAGE), next: z.int().nullable() },
      { epochs: 'Epochs, newest first.', next: `\`before\` ${NEXT}` },
    ),
  )
  .meta({ id: 'EpochPage' });
export type EpochPage = z.output<typeof EpochPage>;

export const SignedEpoch = z
  .object({
    ...EPOCH_ROW,
    ...described(
      {
        validator: z.string().nullable(),
        signed_as: z.string().max(64),
        claim: z.string(),
        signature: Signature.nullable(),
        payload: z.string(),
        policy: z.string(),
        cycles: z.array(z.int()).max(MAX_VERDICTS),
      },
      {
        validator: 'ss58 of the signer; null if the stored input was damaged.',
        signed_as: SIGNED_TEXT,
        claim:
          'The signed text, canonical JSON: number, time and place in the chain, and the hashes of input, policy, result and payload.',
        signature: 'Signature of the validator, `0x` and hex; null for an epoch of an old version.',
        payload: 'The posted weights, byte for byte; their SHA-256 is `payload_hash` of the claim.',
        policy: 'The weight policy, byte for byte; its SHA-256 is `policy_hash` of the claim.',
        cycles: 'Numbers of the cycles that the weights were computed from, oldest first.',
      },
    ),
  })
  .meta({ id: 'SignedEpoch' });
export type SignedEpoch = z.output<typeof SignedEpoch>;

export const WeightsQuery = z
  .object(
    described(
      {
        after: queryNumber(z.int().min(0).max(MAX_NUMBER)).optional(),
        limit: queryNumber(z.int().min(1).max(MAX_WEIGHTS).default(DEFAULT_ROWS)),
      },
      {
        after: 'Only uids above this; absent for the first page.',
        limit: 'Maximum number of entries, 1 to 1000; 100 by default.',
      },
    ),
  )
  .meta({ example: { limit: 100 } });
export type WeightsQuery = z.output<typeof WeightsQuery>;

export const EpochWeights = z
  .object(
    described(
      {
        epoch: z.int(),
        previous_epoch: z.int().nullable(),
        total: z.int(),
        changed: z.int(),
        weights: z
          .array(
            z.object(
              described(
                {
                  uid: z.int(),
                  hotkey: z.string().nullable(),
                  weight: z.int(),
                  previous_weight: z.int().nullable(),
                },
                {
                  uid: 'Uid on the subnet.',
                  hotkey:
                    'ss58 that was registered for the uid; null if the stored inputs of both epochs lack the uid.',
                  weight: 'Weight in this epoch, 0 to 65535; 0 if it has none.',
                  previous_weight: 'Weight in the epoch before; null without that epoch.',
                },
              ),
            ),
          )
          .max(MAX_WEIGHTS),
        next: z.int().nullable(),
      },
      {
        epoch: 'Number of the epoch.',
        previous_epoch: 'Number of the epoch before; null if it is not stored any more.',
        total: 'Number of uids on all pages.',
        changed: 'Number of uids on all pages whose weight differs; 0 without the epoch before.',
        weights: 'Uids with a weight in one of both epochs, ascending.',
        next: `\`after\` ${NEXT}`,
      },
    ),
  )
  .meta({ id: 'EpochWeights' });
export type EpochWeights = z.output<typeof EpochWeights>;

export const ExplanationParams = z.object({
  ...NumberParams.shape,
  ...ExecutorParams.shape,
});

export const WeightExplanation = z
  .object(
    described(
      {
        epoch: z.int(),
        executor_id: z.uuid(),
        hotkey: z.string(),
        uid: z.int().nullable(),
        weight: z.int(),
        executors_of_hotkey: z.int(),
        evidence_id: Sha256,
        cycles_measured: z.int(),
        cycles_of_window: z.int(),
        cycles_since_measured: z.int(),
        pools: z
          .array(
            z.object(
              described(
                {
                  pool: z.enum(['mining', 'idle']),
                  points: z.string().max(64),
                  share: Share,
                  pool_share: Share,
                },
                {
                  pool: '`mining`: fees that its renters paid; `idle`: cycles in which it was idle.',
                  points:
                    'Points of the node as text. `idle`: mean micro-USD per hour. `mining`: micro-USD of fees in the window, multiplied by the factors; micro-USD per hour in epochs of older versions.',
                  share: "The node's share of the pool.",
                  pool_share: "The pool's share of all weight.",
                },
              ),
            ),
          )
          .max(10),
        factors: z
          .array(
            z.object(
              described(
                { factor: z.string().max(64), value: z.int(), text: Text },
                {
                  factor: 'Name of the factor; the points are the product of all.',
                  value:
                    'Value in the last measured cycle: millionths, except `unit` (micro-USD per hour) and `eligible` (0 or 1).',
                  text: 'What the value is based on.',
                },
              ),
            ),
          )
          .max(20),
        obstacles: z.array(Text).max(20),
        improvements: z.array(Text).max(20),
        is_complete: z.boolean(),
      },
      {
        epoch: 'Number of the epoch.',
        executor_id: 'Id of the node.',
        hotkey: 'ss58 of its provider, to which the weight belongs.',
        uid: 'Uid of the hotkey; null if it is not registered, which means no weight.',
        weight: 'Weight of the hotkey, 0 to 65535, for all of its nodes.',
        executors_of_hotkey: 'Number of nodes of the hotkey that were measured.',
        evidence_id: 'Id of the document of the last measured cycle.',
        cycles_measured: 'Number of cycles of the window in which the node was measured.',
        cycles_of_window: 'Number of cycles in the window.',
        cycles_since_measured: 'Cycles since the node was last measured; 0: in the last cycle.',
        pools: 'Points and shares, by pool.',
        factors: 'Factors of the last measured cycle, in the order of multiplication.',
        obstacles: 'Reasons why the node earned nothing in that cycle; empty if it earned.',
        improvements: 'What would raise the weight, as sentences.',
        is_complete:
          'False if a cycle of the epoch was deleted or altered, so that the figures may differ from those of the epoch.',
      },
    ),
  )
  .meta({ id: 'WeightExplanation' });
export type WeightExplanation = z.output<typeof WeightExplanation>;
