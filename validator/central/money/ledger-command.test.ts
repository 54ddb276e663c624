import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { COMPILE_CACHE } from '#shared/runtime/node-process.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createPostgresDatabase, onPostgres } from '../../../test/fakes/scenes/central-database.ts';
import { createPodScene, type PodScene } from '../../../test/fakes/scenes/pod-scene.ts';
import { createAccountPods } from '../market/cut-off/cut-off.ts';
import { openCentralDatabase } from '../platform/database/database.ts';
import { monthOf } from './ledger/month-digest.ts';
import { runMoneyLedgerCommand } from './ledger-command.ts';

const folder = mkdtempSync(join(tmpdir(), 'podwright-money-'));
let scene: PodScene;
let target: string;
/** Starts a central API with an account, a pod and a deleted pod. */
beforeAll(async () => {
  target = onPostgres() ? await createPostgresDatabase() : join(folder, 'central.db');
  scene = await createPodScene({ db: await openCentralDatabase(target) });
  await scene.running();
  await scene.remove(await scene.running());
});
afterAll(async () => {
  await scene?.market.close();
  rmSync(folder, { recursive: true, force: true });
});

const deps = { clock: systemClock, random: systemRandom };

async function run(words: string, change: { file?: string; format?: string; clock?: Clock } = {}) {
  const written = { out: '', err: '' };
  const command = {
    words: words.split(' '),
    usualDatabase: target,
    databaseFile: change.file ?? null,
  };
  const isWell = await runMoneyLedgerCommand(
    { ...command, format: change.format ?? null },
    { ...deps, clock: change.clock ?? deps.clock, pods: createAccountPods(deps) },
    {
      print: (text) => {
        written.out += text;
      },
      complain: (text) => {
        written.err += text;
      },
    },
  );
  return { isWell, ...written };
}

/** Runs the program that the README contains. */
function readdedBy(exported: string) {
  const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8');
  const [, program = ''] = /```js\n(\/\/ re-add\.mjs[\s\S]*?)```/.exec(readme) ?? [];
  const file = join(folder, 're-add.mjs');
  writeFileSync(file, program);
  const { status, stdout } = spawnSync(process.execPath, [file], { input: exported });
  return { status, said: String(stdout) };
}

describe('ledger verify', () => {
  it('reports no findings while the central API writes', async () => {
    const [verified] = await Promise.all([run('verify'), scene.market.renter()]);
    expect(verified).toMatchObject({ isWell: true, err: '' });
    expect(verified.out).toMatch(
      /^\d+ transfers, \d+ accounts, 1 open holds; balance hash \w{64}\n/,
    );
  });

  it('reports findings and changes nothing', async () => {
    const { db } = scene.market.ports;
    await db
      .updateTable('pods')
      .set({ state: 'deleting' })
      .where('state', '=', 'running')
      .execute();
    const stored = (change: 1 | -1) =>
      db
        .updateTable('ledger_accounts')
        .set((eb) => ({ credits_posted: eb('credits_posted', '+', change) }))
        .where('id', '=', `granted:${scene.account.id}`)
        .execute();
    await stored(1);
    const { isWell, out, err } = await run('verify');
    expect(isWell).toBe(false);
    expect(out).toContain('3 findings');
    expect(err).toMatch(/^I1 all accounts: debits and credits differ by 1 uUSD$/m);
    expect(err).toMatch(/^I15 granted:[-\w]+: debits, credits, pending are stored as 0, \d+1, /m);
    expect(err).toMatch(/^I12 hold \d+: is open; its pod [-\w]+ is deleting$/m);
    await stored(-1);
    await db
      .updateTable('pods')
      .set({ state: 'running' })
      .where('state', '=', 'deleting')
      .execute();
  });
});

it('runs as a validator command and does not open the evidence store', () => {
  const main = new URL('../../main.ts', import.meta.url).pathname;
  const { PATH = '' } = process.env;
  const env = { PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, CENTRAL_DATABASE: target };
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'ledger', 'verify'], {
    env,
  });
  expect([status, String(stderr)]).toEqual([0, '']);
  expect(String(stdout)).toContain('every rule holds');
});

describe('ledger pay-in', () => {
  it('credits a payment once, as transferable paid credit', async () => {
    const { email, key } = await scene.market.signUp();
    const balance = async () =>
      (await scene.market.call('GET', '/users/me', { headers: key })).body.balance;
    const before = await balance();
    expect(await run(`pay-in ${email} 12.5 bank-1`)).toMatchObject({
      isWell: true,
      out: 'bank-1: credited\n',
    });
    expect((await run(`pay-in ${email.toUpperCase()} 12.5 bank-1`)).out).toContain('before');
    const other = await run(`pay-in ${email} 12.6 bank-1`);
    expect([other.isWell, other.err]).toEqual([
      false,
      'bank-1: another payment has this reference\n',
    ]);
    const { email: another } = await scene.market.signUp();
    expect((await run(`pay-in ${another} 12.5 bank-1`)).isWell).toBe(false);
    expect(await balance()).toBe(before + 12.5);
    expect((await run('pay-in nobody@example.com 1 bank-2')).isWell).toBe(false);
    expect((await run('verify')).isWell).toBe(true);
  });

  it.each([
    'pay-in',
    'pay-in a@example.com',
    'pay-in a@example.com 0 one',
    'pay-in a@example.com 0.000 one',
    'pay-in a@example.com -1 one',
    'pay-in a@example.com 1e3 one',
    'pay-in a@example.com 0.0000001 one',
    'pay-in a@example.com 1000000 one',
    'pay-in a@example.com 1 a/b',
    'pay-in a@example.com 1 one more',
  ])('rejects %s', async (words) => {
    await expect(run(words)).rejects.toThrow(ConfigError);
  });
});

describe('ledger export', () => {
  it("has the same balances when the README's program recomputes them", async () => {
    const { out } = await run('export');
    const verified = await run('verify');
    const { status, said } = readdedBy(out);
    expect(said).toMatch(/^the same: \w{64}\n$/);
    expect(status).toBe(0);
    expect(verified.out).toContain(said.slice('the same: '.length, -1));
    const forged = out.replace(/"amount_uusd":\d/, '"amount_uusd":9');
    expect(readdedBy(forged)).toMatchObject({
      status: 1,
      said: expect.stringContaining('differs'),
    });
  });

  it('exports the same rows as CSV', async () => {
    const lines = (await run('export', { format: 'csv' })).out.trimEnd().split('\n');
    const json = (await run('export')).out.trimEnd().split('\n');
    const [head = '', first = ''] = lines;
    expect(lines).toHaveLength(json.length + 1);
    expect(new Set(lines.map((line) => line.split(',').length)).size).toBe(1);
    const columns = head.split(',');
    const row = JSON.parse(json[0] ?? '');
    for (const [name, value] of Object.entries(row)) {
      expect(first.split(',')[columns.indexOf(name)]).toBe(String(value ?? ''));
    }
  });
});

it('rejects unknown commands, a server address as argument and a missing database', async () => {
  await expect(run('mend')).rejects.toThrow(ConfigError);
  await expect(run('export', { format: 'xml' })).rejects.toThrow('see --help');
  await expect(run('verify', { file: 'postgres://u:p@h/d' })).rejects.toThrow('CENTRAL_DATABASE');
  await expect(run('verify', { file: join(folder, 'none.db') })).rejects.toThrow('no database');
});

describe('ledger close and archive', () => {
  it('move a month to a file, with which verify and export have the same result', async () => {
    const nowMs = scene.market.clock.now();
    const clock = { ...systemClock, now: () => nowMs + 40 * 24 * 3_600_000 };
    const month = monthOf(nowMs);
    const [verified, exported] = [await run('verify'), await run('export')];
    expect((await run('close', { clock: { ...clock, now: () => nowMs } })).out).toBe(
      'no month has ended since the last closed month\n',
    );
    const closed = await run('close', { clock });
    expect(closed.out).toMatch(new RegExp(`^${month}: \\d+ transfers, hash \\w{64}\n$`));
    const archive = join(folder, 'archive');
    const archived = await run(`archive ${month} ${archive}`, { clock });
    const file = join(archive, `ledger-${month}.jsonl.gz`);
    expect(archived).toEqual({
      isWell: true,
      out: `${month}: archived in ${file}\n`,
      err: '',
    });
    expect(await run('verify')).toEqual(verified);
    expect(await run('export')).toEqual(exported);
    const elsewhere = join(folder, 'elsewhere');
    const missing = await run(`verify ${elsewhere}`);
    expect(missing.isWell).toBe(false);
    expect(missing.err).toContain(`I19 archive ${elsewhere}/ledger-${month}.jsonl.gz: cannot be`);
  });

  it.each(['archive', 'archive 2026-13 folder', 'archive 2026-10', 'close now'])(
    'reject: ledger %s',
    async (words) => {
      await expect(run(words)).rejects.toBeInstanceOf(ConfigError);
    },
  );
});
