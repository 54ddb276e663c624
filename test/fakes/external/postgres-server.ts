/**
 * A PostgreSQL server in a temporary folder, behind a socket in this folder. Tests share one; a test that kills its
 * server starts a separate one.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  chownSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Client } from 'pg';
import { systemClock } from '#shared/runtime/clock.ts';

const STARTS_WITHIN_MS = 30_000;
const POLL_MS = 50;
/** Folders of the server's programs, which Debian keeps off PATH. */
const DEBIAN_PROGRAMS = '/usr/lib/postgresql/*/bin';
/** Superuser that initdb creates. It has no password: only the permissions of the socket's folder restrict access. */
export const SUPERUSER = 'podwright';
/** Settings of every server. Its data need not survive a crash of the host. */
const SETTINGS = [
  'listen_addresses=',
  'fsync=off',
  'full_page_writes=off',
  'max_connections=200',
  'shared_buffers=64MB',
];

export type Owner = { uid: number; gid: number };

/** Listener with TLS: `port` on 127.0.0.1, and the socket of this number; PEM texts. */
export type TlsListener = { port: number; certificate: string; key: string };

export type PostgresServer = {
  /** Folder of the socket. */
  folder: string;
  /** Starts the server again after `kill`; resolves when it answers. */
  start(): Promise<void>;
  /** Sends SIGKILL to the server's first process; resolves when all of its processes have ended. */
  kill(): Promise<void>;
  /** Stops the server without waiting for its end, and deletes its folder. For a handler of `exit`. */
  removeNow(): void;
  /** Stops the server and deletes its folder. */
  remove(): Promise<void>;
};

/**
 * Starts a server; resolves when it answers. With `keepsCommits`, a committed transaction survives `kill`, and tables are
 * vacuumed and analysed, as long runs need it; without, the server is faster. With `primary`, the folder of another server, it is a standby that copies this server. With `tls`,
 * it also listens on 127.0.0.1.
 */
export async function startPostgresServer({
  keepsCommits,
  primary,
  tls,
}: {
  keepsCommits: boolean;
  primary?: string;
  tls?: TlsListener;
}): Promise<PostgresServer> {
  const programs = programsFolder();
  const owner = unprivilegedOwner();
  const folder = mkdtempSync(join(tmpdir(), 'podwright-pg-'));
  const data = join(folder, 'data');
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  let server: ChildProcess | null = null;

  async function start(): Promise<void> {
    const settings = [
      ...SETTINGS,
      `synchronous_commit=${keepsCommits ? 'on' : 'off'}`,
      `autovacuum=${keepsCommits ? 'on' : 'off'}`,
      `unix_socket_directories=${folder}`,
      ...(tls === undefined ? [] : tlsSettings(folder, tls)),
    ];
    const args = ['-D', data, ...settings.flatMap((setting) => ['-c', setting])];
    server = spawn(join(programs, 'postgres'), args, { ...owner, cwd: folder, stdio: 'ignore' });
    await untilAnswers(postgresUrl(folder, 'postgres', tls?.port), server);
  }

  /** Sends the signal, and resolves when the server's first process has ended. */
  async function end(signal: NodeJS.Signals): Promise<void> {
    const ending = server;
    if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return;
    const ended = new Promise((resolve) => ending.once('exit', resolve));
    ending.kill(signal);
    await ended;
  }

  try {
    if (owner !== null) chownSync(folder, owner.uid, owner.gid);
    if (tls !== undefined) writeTlsFiles(folder, tls, owner);
    const [program, args] =
      primary === undefined
        ? ['initdb', ['-A', 'trust', '-E', 'UTF8', '--locale=C', '-N']]
        : ['pg_basebackup', ['-h', primary, '-R', '-N', '-c', 'fast']];
    const files = ['-D', data, '-U', SUPERUSER, ...args];
    execFileSync(join(programs, program), files, { ...owner, cwd: folder, stdio: 'pipe' });
    await start();
  } catch (error) {
    removeFolder();
    throw error;
  }
  return {
    folder,
    start,
    async kill() {
      await end('SIGKILL');
      await untilAlone(data);
    },
    removeNow() {
      // SIGQUIT stops the server and its children at once.
      server?.kill('SIGQUIT');
      removeFolder();
    },
    async remove() {
      await end('SIGQUIT');
      removeFolder();
    },
  };
}

function tlsSettings(folder: string, { port }: TlsListener): string[] {
  const { certificate, key } = tlsFiles(folder);
  return [
    'listen_addresses=127.0.0.1',
    `port=${port}`,
    'ssl=on',
    `ssl_cert_file=${certificate}`,
    `ssl_key_file=${key}`,
  ];
}

function tlsFiles(folder: string) {
  return { certificate: join(folder, 'server.crt'), key: join(folder, 'server.key') };
}

function writeTlsFiles(folder: string, tls: TlsListener, owner: Owner | null): void {
  const files = tlsFiles(folder);
  for (const name of ['certificate', 'key'] as const) {
    writeFileSync(files[name], tls[name], { mode: 0o600 });
    if (owner !== null) chownSync(files[name], owner.uid, owner.gid);
  }
}

/** Returns the URL of a database of the server in `folder`. `port` is the number of its socket. */
export function postgresUrl(folder: string, database: string, port = 5432): string {
  return `postgres://${SUPERUSER}@localhost:${port}/${database}?host=${encodeURIComponent(folder)}`;
}

/** Creates an empty database and returns its URL. */
export async function createDatabaseIn(folder: string, name: string): Promise<string> {
  const client = new Client({ connectionString: postgresUrl(folder, 'postgres') });
  await client.connect();
  await client.query(`create database ${name}`);
  await client.end();
  return postgresUrl(folder, name);
}

/** Folder of the newest installed server's programs. */
function programsFolder(): string {
  const onPath = (process.env['PATH'] ?? '').split(delimiter);
  const found = [...globSync(DEBIAN_PROGRAMS).toSorted(byVersion), ...onPath].find(
    (folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')),
  );
  if (found !== undefined) return found;
  throw new Error(
    'The tests need a PostgreSQL server, and neither PATH nor /usr/lib/postgresql has one: ' +
      'run "sudo sh systemd/prerequisites.sh --tests", or install the package postgresql.',
  );
}

function byVersion(a: string, b: string): number {
  return b.localeCompare(a, 'en', { numeric: true });
}

/** PostgreSQL and PgBouncer refuse to run as root: returns Debian's user for it, or `nobody`. Null when we are not root. */
export function unprivilegedOwner(): Owner | null {
  if (process.getuid?.() !== 0) return null;
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const user = ['postgres', 'nobody'].flatMap((name) => users.filter(([known]) => known === name));
  const [, , uid, gid] = user[0] ?? [];
  if (uid === undefined || gid === undefined) {
    throw new Error('PostgreSQL does not run as root, and there is no user postgres or nobody.');
  }
  return { uid: Number(uid), gid: Number(gid) };
}

async function untilAnswers(url: string, server: ChildProcess): Promise<void> {
  const giveUpMs = systemClock.monotonicMs() + STARTS_WITHIN_MS;
  for (;;) {
    const client = new Client({ connectionString: url });
    client.on('error', () => undefined);
    const problem = await client.connect().then(
      () => null,
      (error: Error) => error.message,
    );
    if (problem === null) return client.end();
    if (server.exitCode !== null || systemClock.monotonicMs() > giveUpMs) {
      throw new Error(`The PostgreSQL server of the tests does not answer: ${problem}`);
    }
    await systemClock.sleep(POLL_MS);
  }
}

/** Waits until no process works in the folder: the children end some time after the first process. */
async function untilAlone(data: string): Promise<void> {
  const giveUpMs = systemClock.monotonicMs() + STARTS_WITHIN_MS;
  while (globSync('/proc/[0-9]*/cwd').some((link) => folderOf(link) === data)) {
    if (systemClock.monotonicMs() > giveUpMs) throw new Error('processes of PostgreSQL remain');
    await systemClock.sleep(POLL_MS);
  }
}

function folderOf(link: string): string | null {
  try {
    return readlinkSync(link);
  } catch {
    return null;
  }
}
