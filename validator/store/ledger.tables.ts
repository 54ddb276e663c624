/** Every table of the validator's ledger: times as integer milliseconds UTC, JSON as text (validator reference 7, 8, 10). */
import type { Generated, Kysely, Selectable, Transaction } from 'kysely';
import type { HealthReport } from '#shared/api/central/validator-routes.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { CycleVerdict } from '../weights/cycle-verdict.state.ts';

/** One row for each check run. Rows are never changed: a trigger refuses it. */
export type EvidenceTable = {
  /** SHA-256 of the document, hex. */
  id: string;
  executor_id: string;
  /** Counts an executor's documents from 1, without gaps. */
  seq: number;
  finished_ms: number;
  verdict: CycleVerdict;
  /** Canonical JSON. */
  document: string;
  /** The validator's, `0x` + hex. */
  signature: string;
};

/** Where an executor's chain begins and ends, signed: held beside its rows, of which any may be taken away. */
export type EvidenceHeadsTable = {
  executor_id: string;
  /** Whose signature it is. */
  validator: Hotkey;
  signed_ms: number;
  /** The first document that it vouches for, and the id of the one before; null where it begins the chain. */
  first_seq: number;
  first_previous: string | null;
  /** When the last document was finished that was too old to be kept; null where all are there. */
  pruned_ms: number | null;
  /** The last document. */
  last_seq: number;
  last_id: string;
  /** `0x` + hex, over the canonical JSON of all of the above. */
  signature: string;
};

export type CyclesTable = { number: number; ended_ms: number };

/** What a cycle came to for each executor; canonical JSON of a CycleEntry. */
export type CycleEntriesTable = {
  cycle: number;
  executor_id: string;
  verdict: CycleVerdict;
  length_ms: number;
  failure_ppm: number;
  entry_json: string;
};

/** `differs`: the central API shows another set than the one that it took. */
export const EPOCH_STATES = ['queued', 'confirmed', 'differs', 'refused'] as const;
export type EpochState = (typeof EPOCH_STATES)[number];

/** Weights as they were computed, stored before they are sent. */
export type EpochsTable = {
  number: number;
  computed_ms: number;
  state: EpochState;
  /** The CycleSet, with the numbers of its cycles in their place. */
  input_json: string;
  policy_json: string;
  input_hash: string;
  policy_hash: string;
  result_hash: string;
  /** What is posted, byte for byte. */
  payload_json: string;
  /** Of the validator over all of it but the state, hex; null in rows of older programs. */
  signature: string | null;
  /** Id of the one before; null where the chain begins, and in rows of older programs. */
  previous: string | null;
  /** The oldest epoch of the chain that was kept when it came; null in rows of older programs. */
  first_kept: number | null;
};

export type LetterKind = 'set-weights' | 'health-report';

/** What is to be told to others: the letters of one lane in this order, lanes beside each other. */
export type OutboxTable = {
  seq: Generated<number>;
  kind: LetterKind;
  /** The epoch; the executor. */
  subject: string;
  lane: string;
  /** How much it says: a newer letter of its lane may take the place of those of no higher rank. */
  rank: number;
  /** SHA-256 of the body, hex: the same for every attempt. */
  idempotency_key: string;
  body: string;
  attempts: number;
  /** When it was put in. */
  made_ms: number;
  next_ms: number;
  /** When it was given up, null before; it stays for people to see. */
  parked_ms: number | null;
  last_error: string;
};

/** What is remembered of an executor between two inspections, and who is at it now. */
export type InspectionsTable = {
  executor_id: string;
  /** When it was last looked at; 0 before the first time. */
  checked_ms: number;
  verdict: HealthReport['verdict'] | null;
  /** When the facts of the newest verdict were read, by the validator's clock; 0 before. No older one takes its place. */
  facts_ms: number;
  /** Until it is looked at again where it did not pass; null: at the next pass. */
  pause_ms: number | null;
  /** Unreachable inspections in a row. */
  transport_failures: number;
  /** Of reasons that count only when they are seen again: how often in a row, by check. */
  streaks_json: string;
  /** Failures that no run since has shown to be over, by check. */
  found_json: string;
  /** The process that is at it, until `held_until_ms` unless it says so again. */
  holder: string | null;
  held_until_ms: number;
};

/** Work that one process at a time does for all. */
export type LeasesTable = { name: string; holder: string; until_ms: number };

/** The last rental probe of each executor: its pod may be there still while `ended_ms` is null. */
export type RentalProbesTable = {
  executor_id: string;
  pod_id: string;
  started_ms: number;
  ended_ms: number | null;
  result_json: string | null;
};

/** Who has which place in a marketplace on one's own machine, in the order of arrival. */
export type NeuronsTable = { uid: number; hotkey: string };

/** The key that each agent answered with last, by its provider's enrolment. */
export type AgentIdentitiesTable = {
  executor_id: string;
  /** The provider's. */
  hotkey: string;
  /** ed25519, hex. */
  public_key: string;
  enrolled_until_ms: number;
};

/** Every policy that evidence was judged by, as canonical JSON. */
export type CheckPoliciesTable = { hash: string; policy_json: string };

/** What an executor was when it first passed under its present record. */
export type AcceptedSpecsTable = {
  executor_id: string;
  /** Type and number of GPUs in the record: a change of it is a change that its provider made. */
  listed: string;
  spec: string;
  gpu_uuids_json: string;
};

/** Who passed with a card, since when, and when last; whose it is, gpu-claim.state.ts says. */
export type GpuClaimsTable = {
  uuid: string;
  executor_id: string;
  /** Of the agent, hex: what another key passes with is another claim. Empty where it is not known. */
  agent_key: string;
  first_ms: number;
  seen_ms: number;
};

/** How long proofs of work take an executor, as a moving mean: of its processor, of its cards. */
export type ProofPacesTable = {
  executor_id: string;
  device: 'cpu' | 'gpu';
  /** Executors with the same are compared. */
  model: string;
  mean_ms: number;
  samples: number;
  seen_ms: number;
};

/** How fast the line of an executor is: moving means of what was measured, in kilobits a second as it sees them. */
export type LinesTable = {
  executor_id: string;
  /** When it was last asked; 0 before. */
  tried_ms: number;
  /** When something was last streamed to the end, and the measurement or try that checks were last told; null before. */
  measured_ms: number | null;
  told_ms: number | null;
  samples: number;
  down_kbit: number;
  up_kbit: number;
  last_down_kbit: number;
  last_up_kbit: number;
  /** The way on which something else arrived than was sent when it was last measured. */
  false_stream: 'down' | 'up' | null;
  /** How often in a row it would not be measured. */
  refusals: number;
};

/** What agents are to run, the newest last; each row has a higher sequence than all before it. */
export type AgentReleasesTable = {
  sequence: number;
  /** What the tag named. */
  digest: string;
  /** What agents were to run before; null for the first. */
  previous_digest: string | null;
  platforms_json: string;
  version: string;
  min_sequence: number;
  min_agent: string;
  rollout_permille: number;
  /** What to run instead of `digest`; null when nothing. */
  rollback_digest: string | null;
  rollback_reason: string;
  notes: string;
  /** Since when it is given out to so many. */
  since_ms: number;
};

export type Tables = {
  lines: LinesTable;
  agent_releases: AgentReleasesTable;
  inspections: InspectionsTable;
  leases: LeasesTable;
  rental_probes: RentalProbesTable;
  check_policies: CheckPoliciesTable;
  accepted_specs: AcceptedSpecsTable;
  gpu_claims: GpuClaimsTable;
  proof_paces: ProofPacesTable;
  evidence: EvidenceTable;
  evidence_heads: EvidenceHeadsTable;
  cycles: CyclesTable;
  cycle_entries: CycleEntriesTable;
  epochs: EpochsTable;
  outbox: OutboxTable;
  neurons: NeuronsTable;
  agent_identities: AgentIdentitiesTable;
};

export type Ledger = Kysely<Tables>;
/** The ledger or a transaction on it: what every store function takes first. */
export type LedgerDb = Ledger | Transaction<Tables>;

export type EvidenceRow = Selectable<EvidenceTable>;
export type EvidenceHeadRow = Selectable<EvidenceHeadsTable>;
export type CycleEntryRow = Selectable<CycleEntriesTable>;
export type EpochRow = Selectable<EpochsTable>;
export type GpuClaimRow = Selectable<GpuClaimsTable>;
export type LineRow = Selectable<LinesTable>;
export type AgentReleaseRow = Selectable<AgentReleasesTable>;
export type OutboxRow = Selectable<OutboxTable>;
export type InspectionRow = Selectable<InspectionsTable>;
export type RentalProbeRow = Selectable<RentalProbesTable>;
