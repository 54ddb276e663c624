/** Schema of the evidence store as a list of migrations for both database engines. */
import { type ColumnTypes, POSTGRES_COLUMNS, SQLITE_COLUMNS } from '../database/engine.ts';

export type StoreDialect = ColumnTypes & {
  /** Statements that make the database reject every update of the table's rows. */
  refuseUpdates(table: string, trigger: string, why: string): string[];
};

export const SQLITE_DIALECT: StoreDialect = {
  ...SQLITE_COLUMNS,
  refuseUpdates: (table, trigger, why) => [
    `create trigger ${trigger} before update on ${table} begin select raise(abort, '${why}'); end`,
  ],
};

export const POSTGRES_DIALECT: StoreDialect = {
  ...POSTGRES_COLUMNS,
  refuseUpdates: (table, trigger, why) => [
    `create function ${trigger}() returns trigger language plpgsql as $$
      begin raise exception '${why}'; end $$`,
    `create trigger ${trigger} before update on ${table}
      for each row execute function ${trigger}()`,
  ],
};

type Migration = (dialect: StoreDialect) => string[];

const foundation: Migration = ({ int, serial, tableEnd, refuseUpdates }) => [
  `create table evidence (
    id text primary key,
    executor_id text not null,
    seq ${int} not null,
    finished_ms ${int} not null,
    verdict text not null check (verdict in ('ok', 'failed', 'withheld')),
    document text not null,
    signature text not null,
    unique (executor_id, seq)
  ) ${tableEnd}`,
  'create index evidence_in_time on evidence (finished_ms)',
  ...refuseUpdates('evidence', 'evidence_stays_as_it_is', 'evidence is never changed'),
  `create table cycles (number ${int} primary key, ended_ms ${int} not null) ${tableEnd}`,
  `create table cycle_entries (
    cycle ${int} not null references cycles (number) on delete cascade,
    executor_id text not null,
    verdict text not null check (verdict in ('ok', 'failed', 'withheld')),
    length_ms ${int} not null,
    failure_ppm ${int} not null,
    entry_json text not null,
    primary key (cycle, executor_id)
  ) ${tableEnd}`,
  'create index cycle_entries_of_executor on cycle_entries (executor_id, cycle)',
  `create table epochs (
    number ${int} primary key,
    computed_ms ${int} not null,
    state text not null,
    input_json text not null,
    policy_json text not null,
    input_hash text not null,
    policy_hash text not null,
    result_hash text not null,
    payload_json text not null
  ) ${tableEnd}`,
  `create table outbox (
    seq ${serial},
    kind text not null,
    subject ${int} not null,
    body text not null,
    attempts ${int} not null,
    next_ms ${int} not null,
    parked_ms ${int},
    last_error text not null
  ) ${tableEnd}`,
  `create table neurons (uid ${int} primary key, hotkey text not null unique) ${tableEnd}`,
];

const agentIdentities: Migration = ({ int, tableEnd }) => [
  `create table agent_identities (
    executor_id text primary key,
    hotkey text not null,
    public_key text not null,
    enrolled_until_ms ${int} not null
  ) ${tableEnd}`,
];

const checks: Migration = ({ int, tableEnd }) => [
  `create table check_policies (hash text primary key, policy_json text not null) ${tableEnd}`,
  `create table accepted_specs (
    executor_id text primary key,
    listed text not null,
    spec text not null,
    gpu_uuids_json text not null
  ) ${tableEnd}`,
  `create table gpu_claims (
    uuid text primary key,
    executor_id text not null,
    seen_ms ${int} not null
  ) ${tableEnd}`,
  `create table proof_times (
    processor text primary key,
    mean_ms ${int} not null,
    samples ${int} not null
  ) ${tableEnd}`,
];

/** State that outlives a process or that processes share: inspections, outbox lanes, leases, rental probes. */
const sharedWork: Migration = ({ int, serial, tableEnd }) => [
  `create table inspections (
    executor_id text primary key,
    checked_ms ${int} not null,
    verdict text check (verdict in ('verified', 'failed', 'withheld')),
    transport_failures ${int} not null,
    streaks_json text not null,
    holder text,
    held_until_ms ${int} not null
  ) ${tableEnd}`,
  `create table leases (
    name text primary key,
    holder text not null,
    until_ms ${int} not null
  ) ${tableEnd}`,
  `create table letters (
    seq ${serial},
    kind text not null,
    subject text not null,
    lane text not null,
    rank ${int} not null,
    idempotency_key text not null,
    body text not null,
    attempts ${int} not null,
    next_ms ${int} not null,
    parked_ms ${int},
    last_error text not null
  ) ${tableEnd}`,
  `insert into letters (seq, kind, subject, lane, rank, idempotency_key, body, attempts, next_ms, parked_ms, last_error)
    select seq, kind, cast(subject as text), kind, 0, '', body, attempts, next_ms, parked_ms, last_error from outbox`,
  'drop table outbox',
  'alter table letters rename to outbox',
  'create index outbox_lanes on outbox (lane, seq)',
  'create index outbox_due on outbox (next_ms)',
  `create table rental_probes (
    executor_id text primary key,
    pod_id text not null,
    started_ms ${int} not null,
    ended_ms ${int},
    result_json text
  ) ${tableEnd}`,
];

const lines: Migration = ({ int, tableEnd }) => [
  `create table lines (
    executor_id text primary key,
    tried_ms ${int} not null,
    measured_ms ${int},
    told_ms ${int},
    samples ${int} not null,
    down_kbit ${int} not null,
    up_kbit ${int} not null,
    last_down_kbit ${int} not null,
    last_up_kbit ${int} not null,
    false_stream text check (false_stream in ('down', 'up')),
    refusals ${int} not null
  ) ${tableEnd}`,
  'create index lines_down on lines (last_down_kbit)',
  'create index lines_up on lines (last_up_kbit)',
];

/** Releases of the agent image. */
const agentReleases: Migration = ({ int, tableEnd }) => [
  `create table agent_releases (
    sequence ${int} primary key,
    digest text not null,
    previous_digest text,
    platforms_json text not null,
    version text not null,
    min_sequence ${int} not null,
    min_agent text not null,
    rollout_permille ${int} not null,
    rollback_digest text,
    rollback_reason text not null,
    notes text not null,
    since_ms ${int} not null
  ) ${tableEnd}`,
];

/**
 * Stores proof times per executor instead of per processor model, whose mean the busiest host dominated; the earlier
 * times are dropped. Adds to outbox messages the time at which they were stored.
 */
const proofPaces: Migration = ({ int, tableEnd }) => [
  'drop table proof_times',
  `create table proof_paces (
    executor_id text not null,
    device text not null check (device in ('cpu', 'gpu')),
    model text not null,
    mean_ms ${int} not null,
    samples ${int} not null,
    seen_ms ${int} not null,
    primary key (executor_id, device)
  ) ${tableEnd}`,
  'create index proof_paces_of_model on proof_paces (device, model, seen_ms)',
  'create index proof_paces_in_time on proof_paces (seen_ms)',
  `alter table outbox add column made_ms ${int} not null default 0`,
  'update outbox set made_ms = next_ms',
];

/** Signed heads of evidence chains. Existing chains have no head, so their completeness cannot be proven. */
const evidenceHeads: Migration = ({ int, tableEnd }) => [
  `create table evidence_heads (
    executor_id text primary key,
    validator text not null,
    signed_ms ${int} not null,
    first_seq ${int} not null,
    first_previous text,
    pruned_ms ${int},
    last_seq ${int} not null,
    last_id text not null,
    signature text not null
  ) ${tableEnd}`,
];

/** Orders verdicts by the time of their facts. Several executors may claim a card; the first claim counts. */
const orderedVerdicts: Migration = ({ int, tableEnd }) => [
  `alter table inspections add column facts_ms ${int} not null default 0`,
  `create table card_claims (
    uuid text not null,
    executor_id text not null,
    agent_key text not null,
    first_ms ${int} not null,
    seen_ms ${int} not null,
    primary key (uuid, executor_id)
  ) ${tableEnd}`,
  `insert into card_claims (uuid, executor_id, agent_key, first_ms, seen_ms)
    select uuid, gpu_claims.executor_id, coalesce(public_key, ''), seen_ms, seen_ms from gpu_claims
    left join agent_identities on agent_identities.executor_id = gpu_claims.executor_id`,
  'drop table gpu_claims',
  'alter table card_claims rename to gpu_claims',
  'create index gpu_claims_in_time on gpu_claims (seen_ms)',
];

/** A failure found by a trial counts until a later trial passes. */
const foundFailures: Migration = () => [
  `alter table inspections add column found_json text not null default '{}'`,
];

/** Adds signatures to epochs. Existing epochs stay unsigned. */
const signedEpochs: Migration = () => ['alter table epochs add column signature text'];

/** Executors that did not pass are inspected again after a growing pause. */
const inspectionPauses: Migration = ({ int }) => [
  `alter table inspections add column pause_ms ${int}`,
];

/** The chain of epochs begins with the first epoch after this migration. */
const chainedEpochs: Migration = ({ int }) => [
  'alter table epochs add column previous text',
  `alter table epochs add column first_kept ${int}`,
];

/**
 * Time since which an executor's agent is unreachable. It begins anew for executors that are unreachable during the
 * migration.
 */
const unreachableSince: Migration = ({ int }) => [
  `alter table inspections add column unreachable_since_ms ${int}`,
];

/** Key sets that root keys have signed. */
const keySets: Migration = ({ int, tableEnd, refuseUpdates }) => [
  `create table key_sets (
    sequence ${int} primary key,
    signed_json text not null,
    published_ms ${int} not null
  ) ${tableEnd}`,
  ...refuseUpdates('key_sets', 'key_sets_stay_as_they_are', 'a published key set is never changed'),
];

/**
 * Records the proofs of work that executors were offered and passed, and whether a claim of a card is proven. Executors
 * that are rented during the migration have no proof on record. Records the times of the failures in a streak, because
 * only failures that are an interval apart count.
 */
const proofRecords: Migration = ({ int }) => [
  `alter table inspections add column proof_record_json text not null default 'null'`,
  `alter table inspections add column streak_times_json text not null default '{}'`,
  `alter table gpu_claims add column is_proven ${int} not null default 0`,
];

/** Examinations of renters' reports on pods. */
const reports: Migration = ({ int, tableEnd }) => [
  `create table pod_reports (
    report_id text primary key,
    executor_id text not null,
    pod_id text not null,
    reason text not null,
    reported_ms ${int} not null,
    findings_json text not null,
    looks ${int} not null,
    next_ms ${int} not null,
    outcome text check (outcome in ('confirmed', 'not_confirmed', 'undecided')),
    decided_ms ${int},
    document text,
    signature text,
    cleared_ms ${int}
  ) ${tableEnd}`,
  'create index pod_reports_of_executor on pod_reports (executor_id, decided_ms)',
];

/**
 * Rentals of the validator that hosts cannot recognise. A row exists before the request, so that a restarted process
 * ends the rental.
 */
const hiddenRentals: Migration = ({ int, tableEnd }) => [
  `create table hidden_rentals (
    id text primary key,
    executor_id text not null,
    due_ms ${int} not null,
    account text,
    request_json text,
    idempotency_key text,
    pod_id text,
    started_ms ${int},
    cost_uusd ${int} not null,
    ended_ms ${int},
    result_json text
  ) ${tableEnd}`,
  'create index hidden_rentals_of_executor on hidden_rentals (executor_id, due_ms)',
  `create unique index hidden_rentals_open on hidden_rentals (executor_id)
    where ended_ms is null`,
];

/**
 * Documents are stored as compressed differences from a dictionary. Those of older versions stay as they are, without a
 * dictionary. Dictionaries are never deleted: there is one for each version of the program and of the check policy.
 */
const packedEvidence: Migration = ({ int, serial, tableEnd }) => [
  `create table evidence_dictionaries (
    id ${serial},
    program text not null,
    check_policy_hash text not null,
    text text not null,
    unique (program, check_policy_hash)
  ) ${tableEnd}`,
  `alter table evidence add column dictionary ${int} references evidence_dictionaries (id)`,
];

/**
 * Signs a header of each new document, so that the row can be verified without the document, and stores documents of
 * passed checks in a separate table. Rows of older versions keep their documents.
 */
const droppableDocuments: Migration = ({ int, tableEnd }) => [
  'alter table evidence add column validator text',
  'alter table evidence add column previous text',
  `alter table evidence_heads add column dropped_seq ${int}`,
  `alter table evidence_heads add column dropped_ms ${int}`,
  `create table passed_documents (
    executor_id text not null,
    seq ${int} not null,
    finished_ms ${int} not null,
    document text not null,
    dictionary ${int} references evidence_dictionaries (id),
    primary key (executor_id, seq),
    foreign key (executor_id, seq) references evidence (executor_id, seq)
      on delete cascade on update cascade
  ) ${tableEnd}`,
];

/** Ordered, forward only; the number of applied migrations is the schema number. */
export const MIGRATIONS: readonly Migration[] = [
  foundation,
  agentIdentities,
  checks,
  sharedWork,
  lines,
  agentReleases,
  proofPaces,
  evidenceHeads,
  orderedVerdicts,
  foundFailures,
  signedEpochs,
  inspectionPauses,
  chainedEpochs,
  unreachableSince,
  keySets,
  proofRecords,
  reports,
  hiddenRentals,
  packedEvidence,
  droppableDocuments,
];
