/** The secrets that an agent keeps for renters and itself, to be looked for in what leaves the host. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { secretValuesIn } from '#shared/api/agent/secrets.ts';
import { textsIn } from '#shared/check/diagnosis/redact.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import { GatewaySnapshot, gatewayPaths } from '../../access/ssh/gateway-files.ts';
import { placeOfRepository } from '../../backups/operation.run.ts';
import { placeOfLogin } from '../../containers/images/registry-logins.ts';

const KEY_FILES = ['secret.key', 'identity.key'];

/** Throws where something is there and cannot be read: what it holds could not be hidden. */
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
  return key === null
    ? []
    : [key.toString('hex'), key.toString('base64'), key.toString('base64url')];
}

function hostKeys(snapshot: string): string[] {
  const text = unlessMissing(() => readFileSync(snapshot, 'utf8'));
  if (text === null) return [];
  return GatewaySnapshot.parse(JSON.parse(text)).pods.map(({ host_key }) => host_key);
}

/** Environments, tokens and the like, in every column of JSON. */
function podSecrets(database: DatabaseSync): string[] {
  const specs = columnsOf(database, (name) => name.endsWith('_json')).flatMap((text) =>
    secretValuesIn(JSON.parse(text)),
  );
  return [...specs.flatMap(textsIn), ...columnsOf(database, (name) => name === 'token')];
}

/** Every value of the columns, in any table, whose name is meant. */
function columnsOf(database: DatabaseSync, isMeant: (name: string) => boolean): string[] {
  const columns = database
    .prepare(
      `SELECT t.name AS of_table, c.name AS of_column FROM sqlite_master AS t, pragma_table_info(t.name) AS c
       WHERE t.type = 'table'`,
    )
    .all();
  return columns.flatMap(({ of_table, of_column }) => {
    if (!isMeant(String(of_column))) return [];
    const rows = database.prepare(`SELECT "${of_column}" AS value FROM "${of_table}"`).all();
    return rows.flatMap(({ value }) => (typeof value === 'string' ? [value] : []));
  });
}

function sealedSecrets(database: DatabaseSync, keyPath: string): string[] {
  const key = unlessMissing(() => readFileSync(keyPath));
  if (key === null) return [];
  const sealing = createSealing({ key, random: systemRandom });
  const logins = database.prepare('SELECT pod_id, generation, sealed FROM pod_registry_auth').all();
  const repositories = database
    .prepare('SELECT id, sealed_repository FROM operations WHERE sealed_repository IS NOT NULL')
    .all();
  const opened = [
    ...logins.map(({ pod_id, generation, sealed }) =>
      sealing.open(String(sealed), placeOfLogin(String(pod_id), Number(generation))),
    ),
    ...repositories.map(({ id, sealed_repository: sealed }) =>
      sealing.open(String(sealed), placeOfRepository(String(id))),
    ),
  ];
  return opened.flatMap((text) => textsIn(JSON.parse(text)));
}

function unlessMissing<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}
