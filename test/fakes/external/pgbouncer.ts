/** PgBouncer in transaction mode before a PostgreSQL server of the tests, behind a socket in a temporary folder. */
import { spawn } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Client } from 'pg';
import { eventually } from '../eventually.ts';
import { postgresUrl, SUPERUSER, unprivilegedOwner } from './postgres-server.ts';

/** Debian keeps the program off the PATH of ordinary users. */
const SBIN = '/usr/sbin';

export type PgBouncer = {
  /** Address of the same database through the pooler. */
  urlOf(url: string): string;
  close(): Promise<void>;
};

/**
 * Starts the pooler for the server in `serverFolder`; resolves when it answers. It has fewer connections to a database
 * than its clients have to it, and it refuses unknown startup parameters, as it does by default.
 */
export async function startPgBouncer(
  serverFolder: string,
  { connections }: { connections: number },
): Promise<PgBouncer> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-pgbouncer-'));
  const owner = unprivilegedOwner();
  const settings = join(folder, 'pgbouncer.ini');
  writeFileSync(settings, settingsOf({ folder, serverFolder, connections }));
  if (owner !== null) {
    for (const path of [folder, settings]) chownSync(path, owner.uid, owner.gid);
  }
  const child = spawn('pgbouncer', ['-q', settings], {
    ...owner,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { PATH: `${process.env['PATH']}${delimiter}${SBIN}` },
  });
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => {
    output += String(chunk);
  });
  const ended = new Promise((resolve) => {
    child.once('exit', resolve);
    child.once('error', resolve);
  });
  const close = async () => {
    child.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await eventually('PgBouncer answers', () => {
      if (child.exitCode !== null) throw new Error(`PgBouncer ended: ${output}`);
      return answers(postgresUrl(folder, 'postgres'));
    });
  } catch (error) {
    await close();
    throw error;
  }
  return {
    urlOf: (url) => url.replace(encodeURIComponent(serverFolder), () => encodeURIComponent(folder)),
    close,
  };
}

type Settings = { folder: string; serverFolder: string; connections: number };

function settingsOf({ folder, serverFolder, connections }: Settings): string {
  return [
    '[databases]',
    `* = host=${serverFolder} user=${SUPERUSER}`,
    '[pgbouncer]',
    'listen_port = 5432',
    'listen_addr =',
    `unix_socket_dir = ${folder}`,
    'auth_type = any',
    'pool_mode = transaction',
    `default_pool_size = ${connections}`,
    'max_client_conn = 500',
    '',
  ].join('\n');
}

async function answers(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('select 1');
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}
