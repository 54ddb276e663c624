import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runCommand } from '#shared/runtime/run-command.ts';
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
  const prune = createResticPrune(runCommand);
  expect(await prune(access(), [kept])).toBe(true);
  expect(snapshots()).toEqual([kept]);
  expect(bytes()).toBeLessThan(before);
  await restic('check');
  await expect(prune({ ...access(), password: 'another password' }, [kept])).rejects.toThrow(
    /^restic unlock: .*wrong password/,
  );
  await expect(prune(access(), ['0'.repeat(64)])).rejects.toThrow(/none of the snapshots to keep/);
  expect(snapshots()).toEqual([kept]);
});

it('prune returns false if restic is not installed', async () => {
  const absent = createResticPrune(() =>
    Promise.reject(Object.assign(new Error('spawn restic ENOENT'), { code: 'ENOENT' })),
  );
  expect(await absent(access(), [])).toBe(false);
});
