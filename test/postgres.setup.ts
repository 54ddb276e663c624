/**
 * Starts a PostgreSQL server for this run, in a temporary folder and behind a socket in it, with one migrated database
 * to clone. After the tests, or when the run is interrupted, the server is stopped and its folder deleted.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Client } from 'pg';
import type { TestProject } from 'vitest/node';
import { systemClock } from '#shared/runtime/clock.ts';
import { openCentralDatabase } from '../validator/central/platform/database/database.ts';
import { postgresUrl, TEMPLATE_DATABASE } from './fakes/scenes/central-database.ts';

const STARTS_WITHIN_MS = 30_000;
const POLL_MS = 50;
/** Folders of the server's programs, which Debian keeps off PATH. */
const DEBIAN_PROGRAMS = '/usr/lib/postgresql/*/bin';
/** Superuser that initdb creates. It has no password: only the permissions of the socket's folder restrict access. */
const SUPERUSER = 'podwright';
/** Settings of the server, whose data need not survive a crash of the host. */
const SETTINGS = [
  'listen_addresses=',
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  'max_connections=200',
  'shared_buffers=64MB',
  'autovacuum=off',
];

type Owner = { uid: number; gid: number };

/** Starts the server and provides its folder; the returned function is the teardown. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const programs = programsFolder();
  const owner = unprivilegedOwner();
  const folder = mkdtempSync(join(tmpdir(), 'podwright-pg-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  try {
    if (owner !== null) chownSync(folder, owner.uid, owner.gid);
    const data = join(folder, 'data');
    const initdb = ['-D', data, '-U', SUPERUSER, '-A', 'trust', '-E', 'UTF8', '--locale=C', '-N'];
    execFileSync(join(programs, 'initdb'), initdb, { ...owner, cwd: folder, stdio: 'pipe' });
    const server = startServer(join(programs, 'postgres'), folder, owner);
    const end = () => {
      // SIGQUIT stops the server and its children at once.
      server.kill('SIGQUIT');
    };
    process.once('exit', () => {
      end();
      remove();
    });
    await untilAnswers(folder, server);
    await makeTemplate(folder);
    project.provide('centralDatabase', folder);
    return async () => {
      const ended = new Promise((resolve) => server.once('exit', resolve));
      if (server.exitCode === null) {
        end();
        await ended;
      }
      remove();
    };
  } catch (error) {
    remove();
    throw error;
  }
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

/** PostgreSQL refuses to run as root: returns Debian's user for it, or `nobody`. Null when we are not root. */
function unprivilegedOwner(): Owner | null {
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

function startServer(program: string, folder: string, owner: Owner | null): ChildProcess {
  const settings = [...SETTINGS, `unix_socket_directories=${folder}`];
  const args = ['-D', join(folder, 'data'), ...settings.flatMap((setting) => ['-c', setting])];
  return spawn(program, args, { ...owner, cwd: folder, stdio: 'ignore' });
}

async function untilAnswers(folder: string, server: ChildProcess): Promise<void> {
  const giveUpMs = systemClock.monotonicMs() + STARTS_WITHIN_MS;
  for (;;) {
    const client = new Client({ connectionString: postgresUrl(folder, 'postgres') });
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

async function makeTemplate(folder: string): Promise<void> {
  const client = new Client({ connectionString: postgresUrl(folder, 'postgres') });
  await client.connect();
  await client.query(`create database ${TEMPLATE_DATABASE}`);
  await client.end();
  await (await openCentralDatabase(postgresUrl(folder, TEMPLATE_DATABASE))).destroy();
}
