/** The agent's store in numbers and states, for a bundle: no row whole, no secret. */
import { statSync } from 'node:fs';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import { SCHEMA, schemaOf } from '../../database/database.ts';

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

/** `path`: the file that `database` was opened from. */
export function storeSummary(database: DatabaseSync, path: string): string {
  const tables = database
    .prepare(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
    .all()
    .map(({ name }) => String(name));
  const rows = tables.map((name) => {
    const found = database.prepare(`SELECT count(*) AS found FROM "${name}"`).get();
    return `${name}: ${found?.['found']}`;
  });
  const head = [
    `${path}, ${statSync(path).size} bytes, schema ${schemaOf(database)} (this version: ${SCHEMA})`,
    `rows: ${rows.join(', ')}`,
  ];
  const parts = Object.entries(QUERIES).map(
    ([title, query]) => `${title}\n${answer(database, query)}`,
  );
  return [...head, '', ...parts].join('\n');
}

/** One JSON line each; a store of another version may not have the columns. */
function answer(database: DatabaseSync, query: string): string {
  try {
    const lines = database
      .prepare(query)
      .all()
      .map((row) => JSON.stringify(row));
    return `${lines.join('\n')}\n`;
  } catch (error) {
    return `could not be had: ${error instanceof Error ? error.message : error}\n`;
  }
}
