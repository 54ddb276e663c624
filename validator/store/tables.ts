/** Row types of every table of the evidence store. Times are integer milliseconds UTC, JSON is stored as text. */
import type { Generated, Kysely, Selectable, Transaction } from 'kysely';
import type { HealthReport } from '#shared/api/central/validator-routes.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';

/** One row per check run: the verdict and what the signature covers. A trigger rejects updates. */
export type EvidenceTable = {
  /** SHA-256 of the document, hex. */
  id: string;
  executor_id: string;
  /** Number of the document in its executor's chain, from 1 without gaps. */
  seq: number;
  finished_ms: number;
  verdict: CycleVerdict;
  /** Canonical JSON, or the packed form if there is a dictionary. Empty if the document is in `passed_documents`. */
  document: string;
  /** Signature of the validator, `0x` + hex. */
  signature: string;
  /** Dictionary of the packed document; null if the document is not packed. */
  dictionary: number | null;
  /** Signer, as the signed header names it; null in rows of older versions, whose signature covers the document. */
  validator: Hotkey | null;
  /** Id of the executor's previous document; null for the first, and in rows of older versions. */
  previous: string | null;
};

/** Document of a passed check, which is deleted earlier than its row in `evidence`. */
export type PassedDocumentsTable = {
  executor_id: string;
  seq: number;
  finished_ms: number;
  /** As in `evidence`. */
  document: string;
  dictionary: number | null;
};

/** Text that documents of one version of the program and of the check policy resemble. */
export type EvidenceDictionariesTable = {
  id: Generated<number>;
  program: string;
  check_policy_hash: string;
  text: string;
};

/** Signed first and last document of an executor's chain, from which missing rows are detected. */
export type EvidenceHeadsTable = {
  executor_id: string;
  /** Hotkey of the signer. */
  validator: Hotkey;
  signed_ms: number;
  /**
   * Sequence number of the first document that the head covers, and the id of the document before it; null at the start
   * of the chain.
   */
  first_seq: number;
  first_previous: string | null;
  /** Finish time of the newest document that was pruned; null if no document was pruned. */
  pruned_ms: number | null;
  /**
   * Number up to which documents of passed checks may have been dropped, and the time of the last drop; null before the
   * first.
   */
  dropped_seq: number | null;
  dropped_ms: number | null;
  /** Sequence number and id of the last document. */
  last_seq: number;
  last_id: string;
  /** `0x` + hex, over the canonical JSON of all columns above, without those of a drop before the first. */
  signature: string;
};

export type CyclesTable = { number: number; ended_ms: number };

/** Result of a cycle for one executor; `entry_json` is the canonical JSON of a CycleEntry. */
export type CycleEntriesTable = {
  cycle: number;
  executor_id: string;
  verdict: CycleVerdict;
  length_ms: number;
  failure_ppm: number;
  entry_json: string;
};

/** `differs`: the central API accepted the weights, but publishes other ones. */
export const EPOCH_STATES = ['queued', 'confirmed', 'differs', 'refused'] as const;
export type EpochState = (typeof EPOCH_STATES)[number];

/** Computed weights, stored before they are sent. */
export type EpochsTable = {
  number: number;
  computed_ms: number;
  state: EpochState;
  /** The CycleSet, with numbers of cycles instead of their contents. */
  input_json: string;
  policy_json: string;
  input_hash: string;
  policy_hash: string;
  result_hash: string;
  /** Request body sent to the central API, byte for byte. */
  payload_json: string;
  /** Signature of the validator over the row except its state, hex; null in rows of older versions. */
  signature: string | null;
  /** Id of the previous epoch; null at the start of the chain and in rows of older versions. */
  previous: string | null;
  /** Oldest epoch of the chain that was retained when this epoch was stored; null in rows of older versions. */
  first_kept: number | null;
};

export type MessageKind = 'set-weights' | 'health-report' | 'report-outcome';

/** Messages to the central API: in order of `seq` per lane (partition), lanes in parallel. */
export type OutboxTable = {
  seq: Generated<number>;
  kind: MessageKind;
  /** Number of an epoch, or id of an executor or report. */
  subject: string;
  /** Partition key. */
  lane: string;
  /** A newer message of the lane may replace waiting messages of the same or a lower rank. */
  rank: number;
  /** SHA-256 of the body, hex; the same for every attempt. */
  idempotency_key: string;
  body: string;
  attempts: number;
  /** Time at which the message was stored. */
  made_ms: number;
  next_ms: number;
  /** Time at which the message was parked for an operator; null while it waits. */
  parked_ms: number | null;
  last_error: string;
};

/** State of an executor between two inspections, and the process that is inspecting it. */
export type InspectionsTable = {
  executor_id: string;
  /** Time of the last inspection; 0 before the first. */
  checked_ms: number;
  verdict: HealthReport['verdict'] | null;
  /**
   * Time at which the facts of the newest verdict were read, by the validator's clock; 0 before the first. Older facts
   * never replace them.
   */
  facts_ms: number;
  /** Pause before the next inspection of an executor that did not pass; null: inspect in the next pass. */
  pause_ms: number | null;
  /**
   * Number of consecutive inspections in which the agent was unreachable. For an executor that has passed, the number
   * stays below the limit of a failure until the agent has been unreachable for a whole check interval.
   */
  transport_failures: number;
  /** Time of the first of these inspections; 0 if they count without a minimum time; null while the agent answers. */
  unreachable_since_ms: number | null;
  /** Consecutive failures by check id, for reasons that count only when repeated. */
  streaks_json: string;
  /** Times of the last failures that the streaks count, by check id. */
  streak_times_json: string;
  /** Failures that no later run has resolved, by check id. */
  found_json: string;
  /** Offered and passed proofs of work; `null` before the first. */
  proof_record_json: string;
  /** Process that has claimed the executor until `held_until_ms`; it extends the claim while it works. */
  holder: string | null;
  held_until_ms: number;
};

/** Leases on work that one process does on behalf of all. */
export type LeasesTable = { name: string; holder: string; until_ms: number };

/** Examination of a renter's report on a pod. */
export type PodReportsTable = {
  report_id: string;
  executor_id: string;
  pod_id: string;
  reason: string;
  /** Time of the report by the clock of the central API. */
  reported_ms: number;
  findings_json: string;
  /** Number of attempts to enter the pod. */
  looks: number;
  /** Time of the next attempt. */
  next_ms: number;
  /** Null until the report is decided. */
  outcome: 'confirmed' | 'not_confirmed' | 'undecided' | null;
  decided_ms: number | null;
  /** Signed document of the decision. */
  document: string | null;
  signature: string | null;
  /** Time of the test rental that ended the failure of the executor; null before that. */
  cleared_ms: number | null;
};

/** Last rental probe of each executor. Its pod may still exist while `ended_ms` is null. */
export type RentalProbesTable = {
  executor_id: string;
  pod_id: string;
  started_ms: number;
  ended_ms: number | null;
  result_json: string | null;
};

/**
 * A rental that a host cannot recognise. It waits for a free node while `started_ms` is null, and its pod may exist
 * while `ended_ms` is null.
 */
export type HiddenRentalsTable = {
  id: string;
  executor_id: string;
  due_ms: number;
  /** Name of the account that rents; it and the next three columns are null before the start. */
  account: string | null;
  /** Body of the rent request. */
  request_json: string | null;
  idempotency_key: string | null;
  started_ms: number | null;
  /** Null until the central API has answered. */
  pod_id: string | null;
  /** Highest cost of the rental. */
  cost_uusd: number;
  ended_ms: number | null;
  /** HiddenRentalFacts; null if the rental could not be made or measured. */
  result_json: string | null;
};

/** Registered hotkeys of a local marketplace, in the order of arrival. */
export type NeuronsTable = { uid: number; hotkey: string };

/** Last key of each agent that its provider's enrolment confirmed. */
export type AgentIdentitiesTable = {
  executor_id: string;
  /** Hotkey of the provider. */
  hotkey: string;
  /** ed25519, hex. */
  public_key: string;
  enrolled_until_ms: number;
};

/** Every check policy that evidence was judged by, as canonical JSON. */
export type CheckPoliciesTable = { hash: string; policy_json: string };

/** Hardware of an executor when it first passed under its current listing. */
export type AcceptedSpecsTable = {
  executor_id: string;
  /** Type and number of GPUs as listed; only the provider changes them. */
  listed: string;
  spec: string;
  gpu_uuids_json: string;
};

/**
 * Executors that passed with a card, and the first and last time at which they passed. The checks decide which claim
 * counts.
 */
export type GpuClaimsTable = {
  uuid: string;
  executor_id: string;
  /** Key of the agent, hex; a new key makes a new claim. Empty if unknown. */
  agent_key: string;
  first_ms: number;
  seen_ms: number;
  /** 1 if the executor's proofs of work showed at its last pass that it has the card. */
  is_proven: 0 | 1;
};

/** Moving mean of an executor's proof-of-work times, for its processor and for its cards. */
export type ProofPacesTable = {
  executor_id: string;
  device: 'cpu' | 'gpu';
  /** Executors of one model are compared with each other. */
  model: string;
  mean_ms: number;
  samples: number;
  seen_ms: number;
};

/**
 * Measured bandwidth of an executor in kilobits per second, from the executor's point of view: moving means and last
 * samples.
 */
export type LinesTable = {
  executor_id: string;
  /** Time of the last attempt; 0 before the first. */
  tried_ms: number;
  /**
   * Times of the last complete measurement and of the measurement or attempt that the checks last used; null before the
   * first.
   */
  measured_ms: number | null;
  told_ms: number | null;
  samples: number;
  down_kbit: number;
  up_kbit: number;
  last_down_kbit: number;
  last_up_kbit: number;
  /** Direction in which the last measurement received other bytes than were sent. */
  false_stream: 'down' | 'up' | null;
  /** Consecutive refusals by the agent. */
  refusals: number;
};

/** Releases of the agent image; each has a higher sequence than all before it. */
export type AgentReleasesTable = {
  sequence: number;
  /** Digest that the tag pointed to. */
  digest: string;
  /** Digest of the previous release; null for the first. */
  previous_digest: string | null;
  platforms_json: string;
  version: string;
  min_sequence: number;
  min_agent: string;
  rollout_permille: number;
  /** Digest to run instead of `digest`; null unless rolled back. */
  rollback_digest: string | null;
  rollback_reason: string;
  notes: string;
  /** Start of the present rollout share. */
  since_ms: number;
};

/** Published key sets; `signed_json` is a SignedRootKeySet. A trigger rejects updates. */
export type KeySetsTable = { sequence: number; signed_json: string; published_ms: number };

export type Tables = {
  key_sets: KeySetsTable;
  lines: LinesTable;
  agent_releases: AgentReleasesTable;
  inspections: InspectionsTable;
  leases: LeasesTable;
  rental_probes: RentalProbesTable;
  pod_reports: PodReportsTable;
  hidden_rentals: HiddenRentalsTable;
  check_policies: CheckPoliciesTable;
  accepted_specs: AcceptedSpecsTable;
  gpu_claims: GpuClaimsTable;
  proof_paces: ProofPacesTable;
  evidence: EvidenceTable;
  passed_documents: PassedDocumentsTable;
  evidence_dictionaries: EvidenceDictionariesTable;
  evidence_heads: EvidenceHeadsTable;
  cycles: CyclesTable;
  cycle_entries: CycleEntriesTable;
  epochs: EpochsTable;
  outbox: OutboxTable;
  neurons: NeuronsTable;
  agent_identities: AgentIdentitiesTable;
};

export type EvidenceStore = Kysely<Tables>;
/** The store or a transaction on it: the first argument of every query function. */
export type StoreDb = EvidenceStore | Transaction<Tables>;

/** A check run with the canonical JSON of its document; null if no document is stored. */
export type EvidenceRow = Omit<Selectable<EvidenceTable>, 'dictionary' | 'document'> & {
  document: string | null;
};
export type EvidenceHeadRow = Selectable<EvidenceHeadsTable>;
export type CycleEntryRow = Selectable<CycleEntriesTable>;
export type EpochRow = Selectable<EpochsTable>;
export type GpuClaimRow = Selectable<GpuClaimsTable>;
export type LineRow = Selectable<LinesTable>;
export type AgentReleaseRow = Selectable<AgentReleasesTable>;
export type OutboxRow = Selectable<OutboxTable>;
export type InspectionRow = Selectable<InspectionsTable>;
export type RentalProbeRow = Selectable<RentalProbesTable>;
export type PodReportRow = Selectable<PodReportsTable>;
export type HiddenRentalRow = Selectable<HiddenRentalsTable>;

/**
 * Verdict of a cycle for one executor. `withheld`: the executor could not be measured, which does not lower its weight.
 */
export const CYCLE_VERDICTS = ['ok', 'failed', 'withheld'] as const;
export type CycleVerdict = (typeof CYCLE_VERDICTS)[number];
