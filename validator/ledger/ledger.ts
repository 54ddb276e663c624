/** Opens the validator's ledger, one SQLite file, and brings its schema up to date. */
import { Kysely, sql } from 'kysely';
import { nodeSqliteDialect } from '../node-sqlite-dialect.ts';
import type { Ledger } from './ledger.tables.ts';

const FOUNDATION = [
  `create table evidence (
    id text primary key,
    executor_id text not null,
    seq integer not null,
    finished_ms integer not null,
    verdict text not null check (verdict in ('ok', 'failed', 'withheld')),
    document text not null,
    signature text not null,
    unique (executor_id, seq)
  ) strict`,
  'create index evidence_in_time on evidence (finished_ms)',
  `create trigger evidence_stays_as_it_is before update on evidence
    begin select raise(abort, 'evidence is never changed'); end`,
  'create table cycles (number integer primary key, ended_ms integer not null) strict',
  `create table cycle_entries (
    cycle integer not null references cycles (number) on delete cascade,
    executor_id text not null,
    verdict text not null check (verdict in ('ok', 'failed', 'withheld')),
    length_ms integer not null,
    failure_ppm integer not null,
    entry_json text not null,
    primary key (cycle, executor_id)
  ) strict`,
  'create index cycle_entries_of_executor on cycle_entries (executor_id, cycle)',
  `create table epochs (
    number integer primary key,
    computed_ms integer not null,
    state text not null,
    input_json text not null,
    policy_json text not null,
    input_hash text not null,
    policy_hash text not null,
    result_hash text not null,
    payload_json text not null
  ) strict`,
  `create table outbox (
    seq integer primary key autoincrement,
    kind text not null,
    subject integer not null,
    body text not null,
    attempts integer not null,
    next_ms integer not null,
    parked_ms integer,
    last_error text not null
  ) strict`,
  'create table neurons (uid integer primary key, hotkey text not null unique) strict',
];

const AGENT_IDENTITIES = [
  `create table agent_identities (
    executor_id text primary key,
    hotkey text not null,
    public_key text not null,
    enrolled_until_ms integer not null
  ) strict`,
];

const CHECKS = [
  'create table check_policies (hash text primary key, policy_json text not null) strict',
  `create table accepted_specs (
    executor_id text primary key,
    listed text not null,
    spec text not null,
    gpu_uuids_json text not null
  ) strict`,
  `create table gpu_claims (
    uuid text primary key,
    executor_id text not null,
    seen_ms integer not null
  ) strict`,
  `create table proof_times (
    processor text primary key,
    mean_ms integer not null,
    samples integer not null
  ) strict`,
];

/** A mean of all hosts of a kind was what the busiest of them made of it; a few proofs bring the new ones. */
const PROOF_PACES = [
  'drop table proof_times',
  `create table proof_paces (
    executor_id text not null,
    device text not null check (device in ('cpu', 'gpu')),
    model text not null,
    mean_ms integer not null,
    samples integer not null,
    seen_ms integer not null,
    primary key (executor_id, device)
  ) strict`,
  'create index proof_paces_of_model on proof_paces (device, model)',
];

/** In order; the position counts as the schema's number, which SQLite keeps in `user_version`. Forward only. */
const MIGRATIONS: readonly (readonly string[])[] = [
  FOUNDATION,
  AGENT_IDENTITIES,
  CHECKS,
  PROOF_PACES,
];

/** `path` or `:memory:`. The caller ends it with `destroy()`. Rejects for a ledger of a newer version. */
export async function openLedger(path: string): Promise<Ledger> {
  const ledger: Ledger = new Kysely({ dialect: nodeSqliteDialect(path) });
  try {
    await migrate(ledger, path);
    return ledger;
  } catch (error) {
    await ledger.destroy();
    throw error;
  }
}

async function migrate(ledger: Ledger, path: string): Promise<void> {
  await ledger.transaction().execute(async (tx) => {
    const { rows } = await sql<{ user_version: number }>`pragma user_version`.execute(tx);
    const present = rows[0]?.user_version ?? 0;
    if (present > MIGRATIONS.length) {
      throw new Error(
        `${path} has schema ${present}, this program knows ${MIGRATIONS.length}: run a newer version`,
      );
    }
    for (const statement of MIGRATIONS.slice(present).flat()) await sql.raw(statement).execute(tx);
    await sql.raw(`pragma user_version = ${MIGRATIONS.length}`).execute(tx);
  });
}
