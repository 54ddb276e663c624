import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { eventually } from '../../../../test/fakes/eventually.ts';
import { createResticPrune } from './restic.ts';

const PASSWORD = 'a password of the repository';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-prune-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const location = () => join(folder, 'repository');
const access = () => ({ location: location(), password: PASSWORD, environment: {} });

async function restic(...args: string[]): Promise<void> {
  const env = { PATH: '/usr/bin:/bin', RESTIC_REPOSITORY: location(), RESTIC_PASSWORD: PASSWORD };
  const limits = { timeoutMs: 60_000, maxOutputBytes: 1_000_000, env };
  const { exitCode, stderr } = await runCommand('restic', ['--no-cache', ...args], limits);
  if (exitCode !== 0) throw new Error(stderr);
}

const snapshots = () => readdirSync(join(location(), 'snapshots'));
const ageOf = (id: string) => statSync(join(location(), 'snapshots', id)).mtimeMs;
const byAge = (one: string, other: string) => ageOf(one) - ageOf(other);

function bytes(): number {
  const packs = readdirSync(join(location(), 'data'), { recursive: true, withFileTypes: true });
  return packs
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}

it('prune retains the listed snapshots and frees the space of all other snapshots', async () => {
  await restic('init');
  const data = join(folder, 'data');
  for (const byte of [1, 2]) {
    writeFileSync(data, Buffer.from(Array.from({ length: 500_000 }, (_, at) => (at * at) >> byte)));
    await restic('backup', '--quiet', data);
  }
  const [, kept = ''] = snapshots().toSorted(byAge);
  const before = bytes();
  const prune = createResticPrune(runCommand, { clock: systemClock });
  expect(await prune(access(), [kept])).toBe(true);
  expect(snapshots()).toEqual([kept]);
  expect(bytes()).toBeLessThan(before);
  await restic('check');
  await expect(prune({ ...access(), password: 'another password' }, [kept])).rejects.toThrow(
    /^restic list: .*wrong password/,
  );
  await expect(prune(access(), ['0'.repeat(64)])).rejects.toThrow(/none of the snapshots to keep/);
  expect(snapshots()).toEqual([kept]);
});

it('prune does not run during a backup of another user of this host, whom it cannot signal', async () => {
  await restic('init');
  const data = join(folder, 'data');
  writeFileSync(data, Buffer.from(Array.from({ length: 500_000 }, (_, at) => at * at)));
  await restic('backup', '--quiet', data);
  const [old = ''] = snapshots();
  writeFileSync(join(folder, 'kept'), 'kept');
  await restic('backup', '--quiet', join(folder, 'kept'));
  const [kept = ''] = snapshots().filter((id) => id !== old);
  const locks = () => readdirSync(join(location(), 'locks'));
  // Refers to the data of the old snapshot, which a prune would remove.
  const env = { PATH: '/usr/bin:/bin', RESTIC_REPOSITORY: location(), RESTIC_PASSWORD: PASSWORD };
  const backup = spawn('restic', ['--no-cache', '--quiet', 'backup', '--stdin'], { env });
  backup.stdin.write(readFileSync(data));
  await eventually('the lock', () => locks().length > 0);
  const asOther = { clock: systemClock, self: { uid: 1, hostname: hostname() } };
  await expect(createResticPrune(runCommand, asOther)(access(), [kept])).rejects.toThrow(
    'another process uses the repository',
  );
  expect(locks()).toHaveLength(1);
  const ended = new Promise((resolve) => backup.once('exit', resolve));
  backup.stdin.end();
  expect(await ended).toBe(0);
  await restic('check');
  expect(await createResticPrune(runCommand, asOther)(access(), [kept])).toBe(true);
  expect(snapshots()).toEqual([kept]);
});

it('prune returns false if restic is not installed', async () => {
  const missing = () =>
    Promise.reject(Object.assign(new Error('spawn restic ENOENT'), { code: 'ENOENT' }));
  const absent = createResticPrune(missing, { clock: systemClock });
  expect(await absent(access(), [])).toBe(false);
});
