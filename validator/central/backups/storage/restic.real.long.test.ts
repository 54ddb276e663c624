/** The real restic against the real process of the central API, including kills, quotas and rights. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { repositoryVariables } from '#shared/api/agent/operations.ts';
import { eventually } from '../../../../test/fakes/eventually.ts';
import { freePorts } from '../../../../test/fakes/free-ports.ts';
import {
  type CentralProcess,
  startCentralProcess,
} from '../../../../test/fakes/scenes/central-process.ts';
import { createRepositoryCredentials, type Rights } from './repository-credentials.ts';

const MIB = 1024 * 1024;
const QUOTA_MIB = 24;
const HOTKEY = '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY';
const SECRET = Buffer.from(Uint8Array.from({ length: 32 }, (_, index) => index));
const credentials = createRepositoryCredentials({ secret: SECRET });

let home: string;
let port: number;
let central: CentralProcess;

const startCentral = () =>
  startCentralProcess({
    CENTRAL_HOME: home,
    CENTRAL_PORT: String(port),
    CENTRAL_GATEWAY_URL: 'http://127.0.0.1:1',
    CENTRAL_GATEWAY_HOTKEY: HOTKEY,
    CENTRAL_BACKUP_GIB: String(QUOTA_MIB / 1024),
  });

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'podwright-restic-'));
  writeFileSync(join(home, 'central.secret'), SECRET, { mode: 0o600 });
  ({ first: port } = await freePorts(1));
  central = await startCentral();
});
afterAll(async () => {
  await central.end('SIGKILL');
  rmSync(home, { recursive: true, force: true });
});

/** Creates a folder to back up and a repository of a new account. */
function createScene() {
  const [accountId, repositoryId] = [randomUUID(), randomUUID()];
  const tree = mkdtempSync(join(home, 'tree-'));
  const write = (name: string, content: string | Uint8Array) =>
    writeFileSync(join(tree, name), content);

  const passwordOf = (rights: Rights = 'append') =>
    credentials.of({ repositoryId, accountId, rights }).password;

  function start(args: string[], rights: Rights = 'append', at: string = repositoryId) {
    const { username, password } = credentials.of({ repositoryId, accountId, rights });
    const child = spawn('restic', ['--no-cache', ...args], {
      cwd: tree,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        ...repositoryVariables({
          location: `rest:http://127.0.0.1:${port}/restic/${at}/`,
          environment: { RESTIC_REST_USERNAME: username, RESTIC_REST_PASSWORD: password },
        }),
        RESTIC_PASSWORD: 'correct horse battery',
      },
    });
    return followed(child);
  }

  return {
    accountId,
    repositoryId,
    tree,
    write,
    start,
    repository: join(home, 'backups', repositoryId),
    snapshots: () => readdirSync(join(home, 'backups', repositoryId, 'snapshots')),
    /** Rejects if restic does not end with status 0. */
    async run(args: string[], rights?: Rights): Promise<string> {
      const { code, output } = await start(args, rights).ended;
      expect([args, code, code === 0 ? '' : output]).toEqual([args, 0, '']);
      expect(output).not.toContain(passwordOf(rights));
      return output;
    },
    /** Waits until restic prints the reason, then interrupts it: restic would retry for a minute. */
    async refused(args: string[], because: RegExp, at?: string): Promise<void> {
      const running = start(args, 'append', at);
      await eventually(
        `${args[0]} refused`,
        () => because.test(running.output()) || running.hasEnded(),
      );
      running.child.kill('SIGINT');
      const { code, output } = await running.ended;
      expect(output).toMatch(because);
      expect(code).not.toBe(0);
    },
  };
}

function followed(child: ChildProcess) {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  const ended = new Promise<{ code: number | null; output: string }>((resolve) =>
    child.once('close', (code) => resolve({ code, output })),
  );
  return { child, ended, output: () => output, hasEnded: () => child.exitCode !== null };
}

it('lets restic back up, restore and check; lets restic forget and prune with full rights only', async () => {
  const scene = createScene();
  await scene.run(['init']);
  scene.write('large', randomBytes(8 * MIB));
  scene.write('small', 'one');
  const [, first = ''] = /snapshot ([0-9a-f]+) saved/.exec(await scene.run(['backup', '.'])) ?? [];
  const before = readFileSync(join(scene.tree, 'large'));
  scene.write('large', randomBytes(2 * MIB));
  scene.write('small', 'two');
  await scene.run(['backup', '.']);
  const target = join(home, 'restored');
  await scene.run(['restore', first, '--target', target]);
  expect(readFileSync(join(target, 'small'), 'utf8')).toBe('one');
  expect(readFileSync(join(target, 'large')).equals(before)).toBe(true);

  const forget = ['forget', '--keep-last', '1', '--prune'];
  await scene.refused(forget, /403 This credential may only append/);
  expect(scene.snapshots()).toHaveLength(2);
  await scene.run(forget, 'full');
  expect(scene.snapshots()).toHaveLength(1);
  await scene.run(['check', '--read-data']);
});

it('continues a backup after the server was killed during an upload', async () => {
  const scene = createScene();
  await scene.run(['init']);
  scene.write('large', randomBytes(20 * MIB));
  const backup = scene.start(['backup', '.', '--limit-upload', String(8 * 1024)]);
  const arriving = () => readdirSync(join(scene.repository, 'arriving'));
  await eventually('in the middle', () => arriving().length > 0);
  await central.end('SIGKILL');
  expect(arriving().length).toBeGreaterThan(0);
  central = await startCentral();
  const { code, output } = await backup.ended;
  expect([code, code === 0 ? '' : output]).toEqual([0, '']);
  expect(output).toMatch(/retrying/);
  expect(arriving()).toEqual([]);
  await scene.run(['check', '--read-data']);
});

it('reports an exceeded quota to restic, and the repository stays consistent', async () => {
  const scene = createScene();
  await scene.run(['init']);
  scene.write('large', randomBytes((QUOTA_MIB + 16) * MIB));
  await scene.refused(['backup', '.'], /507 The account's \d+ bytes for backups are used up/);
  expect(scene.snapshots()).toEqual([]);
  await scene.run(['prune'], 'full');
  scene.write('large', 'small');
  await scene.run(['backup', '.']);
  await scene.run(['check']);
});

it('hides the repositories of other accounts', async () => {
  const { accountId, repositoryId } = createScene();
  const { username, password } = credentials.of({ repositoryId, accountId, rights: 'append' });
  const made = await fetch(`http://127.0.0.1:${port}/restic/${repositoryId}/?create=true`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${username}:${password}`)}` },
  });
  expect(made.status).toBe(200);
  const stranger = createScene();
  await stranger.refused(
    ['snapshots'],
    /401 Credentials of this repository are needed/,
    repositoryId,
  );
});
