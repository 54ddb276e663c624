/**
 * Records of a validator that its central API relays to operators: cycles with their verdicts, signed evidence, epochs
 * with their weights, and releases of the agent. The gateway serves them below RECORDS_PATH with the paths of RECORDS.
 */
import { z } from 'zod';
import { described } from '../described.ts';
import { queryNumber } from '../query-number.ts';
import {
  EpochPage,
  EpochsQuery,
  EpochWeights,
  ExplanationParams,
  SignedEpoch,
  WeightExplanation,
  WeightsQuery,
} from './epoch-records.ts';
import {
  CyclePage,
  CyclesQuery,
  CycleVerdicts,
  EvidencePage,
  EvidenceParams,
  EvidenceQuery,
  SignedEvidence,
  VerdictsQuery,
} from './evidence-records.ts';
import { DEFAULT_PAGE, ExecutorParams, NumberParams, Text, Time } from './record-parts.ts';

export const RECORDS_PATH = '/v1/records';

const MAX_RELEASES = 200;

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
