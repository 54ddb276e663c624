import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createTestAgent, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { createFakeEngine } from '../../test/fakes/engine/fake-engine.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import type { Agent } from '../app.ts';
import { openDatabase } from '../database/database.ts';
import { ownerFor } from './pod-secrets.ts';
import { createSecretFiles } from './secret-files.ts';

const VALUE = 'V4LUE of a secret\nand "more"';
const secrets = [{ name: 'token', value: VALUE }];
const names = { secret_names: ['token'] };

const root = join('/dev/shm', `podwright-test-${systemRandom.uuid()}`);
let agent: Agent | null = null;
afterEach(async () => {
  await agent?.stop();
  agent = null;
  rmSync(root, { recursive: true, force: true });
});

function createHost(files = createSecretFiles(root)) {
  const clock = createManualClock();
  const engine = createFakeEngine(clock);
  engine.addImage('podwright.local/base:1', null);
  const lines: string[] = [];
  const out = { write: (line: string) => void lines.push(line) };
  const log = createLog({ name: 'test', level: 'trace' }, out);
  const database = openDatabase(':memory:');
  const running = createTestAgent({ engine, clock, log, database, secretFiles: files });
  agent = running;
  const id = systemRandom.uuid();
  const url = `/v1/pods/${id}`;
  return {
    engine,
    lines,
    database,
    id,
    running,
    put: (change: object) =>
      running.server.inject({ method: 'PUT', url, payload: podSpec(change) }),
    view: async () => (await running.server.inject(url)).json(),
    remove: () => running.server.inject({ method: 'DELETE', url }),
    async isRunning() {
      await eventually('the pod runs', async () => {
        await running.core.reconcile.runOnce();
        return (await running.server.inject(url)).json().phase === 'running';
      });
    },
    file: join(root, id, 'token'),
  };
}

it('mounts the files of a pod read-only, and keeps their content out of everything else', async () => {
  const host = createHost();
  const answer = await host.put({ ...names, secrets });
  expect(answer.statusCode).toBe(200);
  await host.isRunning();
  expect(readFileSync(host.file, 'utf8')).toBe(VALUE);
  expect(statSync(host.file).mode & 0o777).toBe(0o400);
  expect(statSync(root).mode & 0o777).toBe(0o700);
  const [container] = [...host.engine.containers.values()];
  expect(container?.spec.readOnlyMounts).toContainEqual({
    source: join(root, host.id),
    target: '/run/secrets',
  });
  const seen = JSON.stringify([container, answer.json(), await host.view(), host.lines]);
  expect(seen).not.toContain('V4LUE');
  const tables = host.database.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).all();
  for (const { name } of tables) {
    const rows = JSON.stringify(host.database.prepare(`SELECT * FROM "${String(name)}"`).all());
    expect([name, rows.includes('V4LUE')]).toEqual([name, false]);
  }

  // The same request without the values changes nothing, as does a later generation.
  expect((await host.put(names)).statusCode).toBe(200);
  expect((await host.put({ ...names, generation: 2 })).statusCode).toBe(200);
  await host.remove();
  await eventually('the pod is removed', async () => (await host.view()).phase === 'removed');
  expect(existsSync(join(root, host.id))).toBe(false);
  expect(host.database.prepare('SELECT * FROM pod_secrets').all()).toEqual([]);
});

it('writes the files again before a start, because a reboot of the host removes them', async () => {
  const host = createHost();
  await host.put({ ...names, secrets });
  await host.isRunning();
  rmSync(root, { recursive: true });
  const url = `/v1/pods/${host.id}/reboot`;
  const reboot = await host.running.server.inject({
    method: 'POST',
    url,
    payload: { reboot: 1 },
  });
  expect(reboot.statusCode).toBe(200);
  await eventually('the reboot is done', async () => (await host.view()).reboots_done === 1);
  expect(readFileSync(host.file, 'utf8')).toBe(VALUE);
});

it.each([
  ['no value', names, /secrets is refused: the value of token is missing/],
  ['a name twice', { secret_names: ['token', 'token'], secrets }, /each name once/],
  ['a volume there', { ...names, secrets, volumes: ['/run/secrets'] }, /holds the secrets/],
])('refuses a pod with %s, and stores nothing', async (_, change, message) => {
  const host = createHost();
  const answer = await host.put(change);
  expect(answer.statusCode).toBe(400);
  expect(answer.json().error.code).toBe('spec_refused');
  expect(answer.json().error.message).toMatch(message);
  expect(host.database.prepare('SELECT * FROM pods').all()).toEqual([]);
});

it('refuses pods with secrets on a host without a file system in memory, and accepts other pods', async () => {
  const disk = join(tmpdir(), `podwright-test-${systemRandom.uuid()}`);
  const host = createHost(createSecretFiles(disk));
  const answer = await host.put({ ...names, secrets });
  rmSync(disk, { recursive: true, force: true });
  expect([answer.statusCode, answer.json().error.message]).toEqual([
    400,
    expect.stringContaining('not on a file system in memory'),
  ]);
  expect((await host.put({})).statusCode).toBe(200);
});

it('removes files of pods that the store does not contain, and files that a pod no longer names', () => {
  const files = createSecretFiles(root);
  const owner = { uid: 0, gid: 0 };
  files.write('old', secrets, owner);
  files.write('kept', [...secrets, { name: 'other', value: '' }], owner);
  files.retain(new Set(['kept']));
  expect(readdirSync(root)).toEqual(['kept']);
  files.write('kept', secrets, owner);
  expect(readdirSync(join(root, 'kept'))).toEqual(['token']);
});

it.each([
  ['', 0, 0],
  ['root', 0, 0],
  ['1000', 1000, 0],
  ['1000:100', 1000, 100],
  ['node', 0, 0],
])('gives the files of an image with USER %j to %i:%i', (user, uid, gid) => {
  expect(ownerFor(user)).toEqual({ uid, gid });
});
