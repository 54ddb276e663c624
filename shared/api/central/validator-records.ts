/**
 * Records of a validator that its central API relays to operators: cycles with their verdicts, signed evidence, epochs
 * with their weights, and releases of the agent. The gateway serves them below RECORDS_PATH with the paths of RECORDS.
 */
import { z } from 'zod';
import { described } from '../described.ts';
import { queryNumber } from '../query-number.ts';

export const RECORDS_PATH = '/v1/records';

const MAX_NUMBER = 1_000_000_000;
const MAX_PAGE = 100;
const MAX_VERDICTS = 1_000;
const MAX_WEIGHTS = 1_000;
const MAX_RELEASES = 200;
const DEFAULT_PAGE = 20;
const DEFAULT_ROWS = 100;

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const Signature = z.string().max(130);
/** UTC without offset, as `naiveUtc` formats it. */
const Time = z.string().max(32);
const Verdict = z.enum(['ok', 'failed', 'withheld']);
const Share = z.number().min(0).max(1);
/** Text of a validator about a fact: bounded, so that a faulty one cannot fill a page. */
const Text = z.string().max(2_000);

const VERDICT = '`ok`, `failed`, or `withheld` if the checks could not be completed.';
const NEXT = 'for the next page; null on the last page.';

const olderThan = (what: string) =>
  described(
    {
      before: queryNumber(z.int().min(1).max(MAX_NUMBER)).optional(),
      limit: queryNumber(z.int().min(1).max(MAX_PAGE).default(DEFAULT_PAGE)),
    },
    {
      before: `Only ${what} with a lower number; absent for the newest.`,
      limit: 'Maximum number of entries, 1 to 100; 20 by default.',
    },
  );

const NumberParams = z.object({ number: queryNumber(z.int().min(1).max(MAX_NUMBER)) });
const ExecutorParams = z.object({ id: z.uuid().toLowerCase() });
const EvidenceParams = z.object({ id: Sha256.describe('SHA-256 of the document, hex.') });

const ValidatorStatus = z
  .object(
    described(
      {
        hotkey: z.string(),
        version: z.string(),
        cycle: z.int().nullable(),
        cycle_ended_at: Time.nullable(),
        epoch: z.int().nullable(),
        epoch_computed_at: Time.nullable(),
        messages_waiting: z.int(),
        oldest_message_at: Time.nullable(),
        messages_parked: z.int(),
      },
      {
        hotkey: 'ss58 of the validator, whose key signs evidence and epochs.',
        version: 'Version of the program.',
        cycle: 'Number of the newest cycle; null before the first.',
        cycle_ended_at: 'Time at which it ended (UTC); null before the first.',
        epoch: 'Number of the newest epoch; null before the first.',
        epoch_computed_at: 'Time at which its weights were computed (UTC); null before the first.',
        messages_waiting: 'Reports and weights that wait for delivery to this central API.',
        oldest_message_at: 'Time at which the oldest of them was stored (UTC); null if none waits.',
        messages_parked: 'Messages that are not sent any more, after refusals or many attempts.',
      },
    ),
  )
  .meta({ id: 'ValidatorStatus' });
export type ValidatorStatus = z.output<typeof ValidatorStatus>;

const CyclesQuery = z.object(olderThan('cycles')).meta({ example: { limit: 20 } });
export type CyclesQuery = z.output<typeof CyclesQuery>;

const CyclePage = z
  .object(
    described(
      {
        cycles: z
          .array(
            z.object(
              described(
                {
                  number: z.int(),
                  ended_at: Time,
                  passed: z.int(),
                  failed: z.int(),
                  withheld: z.int(),
                },
                {
                  number: 'Number of the cycle; cycles are numbered without gaps.',
                  ended_at: 'Time at which the cycle ended (UTC).',
                  passed: 'Nodes that passed their checks.',
                  failed: 'Nodes that failed.',
                  withheld: 'Nodes whose checks could not be completed.',
                },
              ),
            ),
          )
          .max(MAX_PAGE),
        next: z.int().nullable(),
      },
      { cycles: 'Cycles, newest first.', next: `\`before\` ${NEXT}` },
    ),
  )
  .meta({ id: 'CyclePage' });
export type CyclePage = z.output<typeof CyclePage>;

const VerdictsQuery = z
  .object(
    described(
      {
        verdict: Verdict.optional(),
        after: z.uuid().toLowerCase().optional(),
        limit: queryNumber(z.int().min(1).max(MAX_VERDICTS).default(DEFAULT_ROWS)),
      },
      {
        verdict: 'Only nodes with this verdict; absent for all.',
        after: 'Only nodes with a higher id; absent for the first page.',
        limit: 'Maximum number of entries, 1 to 1000; 100 by default.',
      },
    ),
  )
  .meta({ example: { limit: 100 } });
export type VerdictsQuery = z.output<typeof VerdictsQuery>;

const CycleVerdicts = z
  .object(
    described(
      {
        cycle: z.int(),
        ended_at: Time,
        verdicts: z
          .array(
            z.object(
              described(
                {
                  executor_id: z.uuid(),
                  hotkey: z.string(),
                  evidence_id: Sha256,
                  verdict: Verdict,
                  gpu_model: z.string(),
                  gpu_count: z.int(),
                  rented: z.boolean(),
                  simulated: z.boolean(),
                  uptime_minutes: z.int(),
                  failure_ppm: z.int(),
                },
                {
                  executor_id: 'Id of the node.',
                  hotkey: 'ss58 of its provider.',
                  evidence_id: 'Id of the document on which the verdict is based.',
                  verdict: VERDICT,
                  gpu_model: 'Full GPU name.',
                  gpu_count: 'Number of GPUs.',
                  rented: 'True if a renter used the node.',
                  simulated: 'True if its GPUs are simulated.',
                  uptime_minutes: "Minutes of good cycles in the policy's uptime window.",
                  failure_ppm: 'Moving average of failures, in millionths, including this cycle.',
                },
              ),
            ),
          )
          .max(MAX_VERDICTS),
        next: z.uuid().nullable(),
      },
      {
        cycle: 'Number of the cycle.',
        ended_at: 'Time at which the cycle ended (UTC).',
        verdicts: 'Verdicts in the order of node ids.',
        next: `\`after\` ${NEXT}`,
      },
    ),
  )
  .meta({ id: 'CycleVerdicts' });
export type CycleVerdicts = z.output<typeof CycleVerdicts>;

const EvidenceQuery = z.object(olderThan('documents')).meta({ example: { limit: 20 } });
export type EvidenceQuery = z.output<typeof EvidenceQuery>;

const EvidencePage = z
  .object(
    described(
      {
        executor_id: z.uuid(),
        first_seq: z.int().nullable(),
        last_seq: z.int().nullable(),
        documents: z
          .array(
            z.object(
              described(
                { id: Sha256, seq: z.int(), finished_at: Time, verdict: Verdict },
                {
                  id: 'SHA-256 of the document, hex.',
                  seq: "Number of the document in the node's chain, from 1 without gaps.",
                  finished_at: 'Time at which the check ended (UTC).',
                  verdict: VERDICT,
                },
              ),
            ),
          )
          .max(MAX_PAGE),
        next: z.int().nullable(),
      },
      {
        executor_id: 'Id of the node.',
        first_seq:
          'Number of the oldest document that the signed head of the chain covers; null without a trusted head.',
        last_seq: 'Number of the newest document that it covers; null without a trusted head.',
        documents: 'Documents, newest first.',
        next: `\`before\` ${NEXT}`,
      },
    ),
  )
  .meta({ id: 'EvidencePage' });
export type EvidencePage = z.output<typeof EvidencePage>;

const SIGNED_TEXT =
  'Text before the signed one: the signature is sr25519 over both, as UTF-8. It ends with a line break.';

const SignedEvidence = z
  .object(
    described(
      {
        id: Sha256,
        executor_id: z.uuid(),
        seq: z.int(),
        finished_at: Time,
        verdict: Verdict,
        signed_as: z.string().max(64),
        document: z.string(),
        signature: Signature,
      },
      {
        id: 'SHA-256 of `document` as UTF-8, hex.',
        executor_id: 'Id of the node.',
        seq: "Number of the document in the node's chain.",
        finished_at: 'Time at which the check ended (UTC).',
        verdict: VERDICT,
        signed_as: SIGNED_TEXT,
        document:
          'The document, canonical JSON, exactly as it was signed. Its member `validator` names the signer.',
        signature: 'Signature of the validator, `0x` and hex.',
      },
    ),
  )
  .meta({ id: 'SignedEvidence' });
export type SignedEvidence = z.output<typeof SignedEvidence>;

const EpochsQuery = z.object(olderThan('epochs')).meta({ example: { limit: 20 } });
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

const EpochPage = z
  .object(
    described(
      { epochs: z.array(z.object(EPOCH_ROW)).max(MAX_PAGE), next: z.int().nullable() },
      { epochs: 'Epochs, newest first.', next: `\`before\` ${NEXT}` },
    ),
  )
  .meta({ id: 'EpochPage' });
export type EpochPage = z.output<typeof EpochPage>;

const SignedEpoch = z
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

const WeightsQuery = z
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

const EpochWeights = z
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
                  hotkey: 'ss58 that was registered for the uid; null if it was not involved.',
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

const ExplanationParams = z.object({
  ...NumberParams.shape,
  ...ExecutorParams.shape,
});

const WeightExplanation = z
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
                  pool: '`mining`: cycles in which the node was rented; `idle`: the others.',
                  points: 'Mean points of the node, micro-USD per hour, as text.',
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

const ReleasesQuery = z
  .object(
    described(
      { limit: queryNumber(z.int().min(1).max(MAX_RELEASES).default(DEFAULT_PAGE)) },
      { limit: 'Maximum number of entries, 1 to 200; 20 by default.' },
    ),
  )
  .meta({ example: { limit: 20 } });
export type ReleasesQuery = z.output<typeof ReleasesQuery>;

const ReleaseList = z
  .object(
    described(
      {
        releases: z
          .array(
            z.object(
              described(
                {
                  sequence: z.int(),
                  version: z.string().max(200),
                  digest: z.string().max(100),
                  previous_digest: z.string().max(100).nullable(),
                  rollout_permille: z.int(),
                  rollout_since: Time,
                  rollback_digest: z.string().max(100).nullable(),
                  rollback_reason: Text,
                  min_sequence: z.int(),
                  min_agent: z.string().max(64),
                  notes: Text,
                },
                {
                  sequence: 'Number that increases with every release and rollback.',
                  version: 'Version of the release.',
                  digest: 'Digest of the image.',
                  previous_digest: 'Digest of the release before; null for the first.',
                  rollout_permille: 'Share of the agents that get it now, per mille.',
                  rollout_since: 'Time at which that share was set (UTC).',
                  rollback_digest: 'Digest to run instead; null unless it was rolled back.',
                  rollback_reason: 'Reason of the rollback; empty without one.',
                  min_sequence: 'Agents with a lower sequence do not wait for their share.',
                  min_agent: 'Oldest version of the agent that can install it.',
                  notes: 'Notes of the release.',
                },
              ),
            ),
          )
          .max(MAX_RELEASES),
      },
      { releases: 'Releases of the agent, newest first; the first one is in force.' },
    ),
  )
  .meta({ id: 'ReleaseList' });
export type ReleaseList = z.output<typeof ReleaseList>;

const NO_PARAMS = z.object({});
const NO_QUERY = z.object({});

/** Every record by name. Parameters of a path are written as fastify does. */
export const RECORDS = {
  status: { path: '', params: NO_PARAMS, query: NO_QUERY, answer: ValidatorStatus },
  cycles: { path: '/cycles', params: NO_PARAMS, query: CyclesQuery, answer: CyclePage },
  verdicts: {
    path: '/cycles/:number/verdicts',
    params: NumberParams,
    query: VerdictsQuery,
    answer: CycleVerdicts,
  },
  documents: {
    path: '/executors/:id/evidence',
    params: ExecutorParams,
    query: EvidenceQuery,
    answer: EvidencePage,
  },
  evidence: {
    path: '/evidence/:id',
    params: EvidenceParams,
    query: NO_QUERY,
    answer: SignedEvidence,
  },
  epochs: { path: '/epochs', params: NO_PARAMS, query: EpochsQuery, answer: EpochPage },
  epoch: { path: '/epochs/:number', params: NumberParams, query: NO_QUERY, answer: SignedEpoch },
  weights: {
    path: '/epochs/:number/weights',
    params: NumberParams,
    query: WeightsQuery,
    answer: EpochWeights,
  },
  explanation: {
    path: '/epochs/:number/executors/:id',
    params: ExplanationParams,
    query: NO_QUERY,
    answer: WeightExplanation,
  },
  releases: { path: '/releases', params: NO_PARAMS, query: ReleasesQuery, answer: ReleaseList },
} as const;
export type RecordName = keyof typeof RECORDS;
