/**
 * Reads the agent's store for a diagnosis archive: a summary, and the secrets that are redacted in every
 * part.
 */
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { secretValuesIn } from '#shared/api/agent/secrets.ts';
import { secretForms, textsIn } from '#shared/check/archive/redact.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import { GatewaySnapshot, gatewayPaths } from '../access/ssh/gateway-files.ts';
import { placeOfRepository } from '../backups/run-operation.ts';
import { placeOfLogin } from '../containers/images/registry-logins.ts';
import { SCHEMA, schemaOf } from '../database/database.ts';
import { placeOfSecret } from '../pods/pod-secrets.ts';

const KEY_FILES = ['secret.key', 'identity.key'];

/**
 * Returns the secrets of renters and of the agent. Throws if a secret cannot be read, because it could not be redacted.
 */
export function storeSecrets(database: DatabaseSync, home: string): string[] {
  return [
    ...KEY_FILES.flatMap((name) => keyForms(join(home, name))),
    ...hostKeys(gatewayPaths(home).snapshot),
    ...podSecrets(database),
    ...sealedSecrets(database, join(home, 'secret.key')),
  ];
}

function keyForms(path: string): string[] {
  const key = unlessMissing(() => readFileSync(path));
  return key === null ? [] : secretForms(key);
}

function hostKeys(snapshot: string): string[] {
  const text = unlessMissing(() => readFileSync(snapshot, 'utf8'));
  if (text === null) return [];
  return GatewaySnapshot.parse(JSON.parse(text)).pods.map(({ host_key }) => host_key);
}

/** Returns the tokens, and the secret values in every JSON column. */
function podSecrets(database: DatabaseSync): string[] {
  const specs = columnsOf(database, (name) => name.endsWith('_json')).flatMap((text) =>
    secretValuesIn(JSON.parse(text)),
  );
  return [...specs.flatMap(textsIn), ...columnsOf(database, (name) => name === 'token')];
}

/** Returns all texts in the columns, of any table, whose name matches. */
function columnsOf(database: DatabaseSync, matches: (name: string) => boolean): string[] {
  const columns = database
    .prepare(
      `SELECT t.name AS of_table, c.name AS of_column FROM sqlite_master AS t, pragma_table_info(t.name) AS c
       WHERE t.type = 'table'`,
    )
    .all();
  return columns.flatMap(({ of_table, of_column }) => {
    if (!matches(String(of_column))) return [];
    const rows = database.prepare(`SELECT "${of_column}" AS value FROM "${of_table}"`).all();
    return rows.flatMap(({ value }) => (typeof value === 'string' ? [value] : []));
  });
}

function sealedSecrets(database: DatabaseSync, keyPath: string): string[] {
  const key = unlessMissing(() => readFileSync(keyPath));
  if (key === null) return [];
  const sealing = createSealing({ key, random: systemRandom });
  const logins = database.prepare('SELECT pod_id, generation, sealed FROM pod_registry_auth').all();
  // The table is missing in a store that no agent of this version has opened.
  const secrets = hasTable(database, 'pod_secrets')
    ? database.prepare('SELECT pod_id, name, sealed FROM pod_secrets').all()
    : [];
  const repositories = database
    .prepare('SELECT id, sealed_repository FROM operations WHERE sealed_repository IS NOT NULL')
    .all();
  const opened = [
    ...logins.map(({ pod_id, generation, sealed }) =>
      sealing.open(String(sealed), placeOfLogin(String(pod_id), Number(generation))),
    ),
    ...secrets.map(({ pod_id, name, sealed }) =>
      sealing.open(String(sealed), placeOfSecret(String(pod_id), String(name))),
    ),
    ...repositories.map(({ id, sealed_repository: sealed }) =>
      sealing.open(String(sealed), placeOfRepository(String(id))),
    ),
  ];
  return opened.flatMap((text) => textsIn(JSON.parse(text)));
}

function hasTable(database: DatabaseSync, name: string): boolean {
  const found = database.prepare(`SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?`);
  return found.get(name) !== undefined;
}

function unlessMissing<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

const MAX_EVENTS = 500;

const QUERIES: Record<string, string> = {
  'pods by phase': 'SELECT phase, desired, count(*) AS pods FROM pods GROUP BY phase, desired',
  'leases by state': 'SELECT kind, state, count(*) AS leases FROM leases GROUP BY kind, state',
  'backups and restores by stage':
    'SELECT kind, stage, finished_ms IS NULL AS under_way, count(*) AS operations FROM operations GROUP BY kind, stage, under_way',
  pods: `SELECT id, phase, desired, phase_since_ms, generation, observed_generation, container_id, reason, message,
      attempts, restart_count, port_conflicts, next_retry_ms, created_ms FROM pods ORDER BY created_ms`,
  'newest events': `SELECT pod_id, at_ms, phase, reason, message FROM pod_events ORDER BY id DESC LIMIT ${MAX_EVENTS}`,
};

/** Returns counts and states without secrets. `path`: the file that `database` was opened from. */
export function storeSummary(database: DatabaseSync, path: string): string {
  const tables = database
    .prepare(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
    .all()
    .map(({ name }) => String(name));
  const counts = tables.map((name) => {
    const row = database.prepare(`SELECT count(*) AS count FROM "${name}"`).get();
    return `${name}: ${row?.['count']}`;
  });
  const head = [
    `${path}, ${statSync(path).size} bytes, schema ${schemaOf(database)} (this version: ${SCHEMA})`,
    `rows: ${counts.join(', ')}`,
  ];
  const sections = Object.entries(QUERIES).map(
    ([title, query]) => `${title}\n${resultOf(database, query)}`,
  );
  return [...head, '', ...sections].join('\n');
}

/** Returns one JSON line per row, or the error: stores of other versions may lack the columns. */
function resultOf(database: DatabaseSync, query: string): string {
  try {
    const lines = database
      .prepare(query)
      .all()
      .map((row) => JSON.stringify(row));
    return `${lines.join('\n')}\n`;
  } catch (error) {
    return `not available: ${messageOf(error)}\n`;
  }
}
