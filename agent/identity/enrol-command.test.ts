import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { readEnrolment } from '#shared/api/agent/identity.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSigner, toHex } from '#shared/signing/sr25519.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { EnrolError, runEnrol } from './enrol-command.ts';

const folder = mkdtempSync(join(tmpdir(), 'podwright-enrol-'));
afterAll(() => rmSync(folder, { recursive: true }));
const ID = '11111111-1111-4111-8111-111111111111';
const OTHER_ID = '22222222-2222-4222-8222-222222222222';
const seed = new Uint8Array(32).fill(7);
const provider = createSigner(seed);
const seedFile = join(folder, 'provider.seed');
writeFileSync(seedFile, `0x${Buffer.from(seed).toString('hex')}\n`, { mode: 0o600 });

function hostAt(home = join(folder, systemRandom.uuid()), executorId = ID) {
  const clock = createManualClock();
  const ports = { clock, random: systemRandom, host: () => ({ home, executorId }) };
  return { home, clock, run: (...args: string[]) => runEnrol(args, ports) };
}

it('enrols an agent without the provider’s key on the host', () => {
  const { run, home } = hostAt();
  expect(run('show')).toMatch(/^key [0-9a-f]{64}\nnot enrolled\n$/);
  const asked = run('request', '--days', '30').trim();
  const enrolment = run('sign', '--seed-file', seedFile, asked).trim();
  expect(run('accept', enrolment)).toBe(`enrolled by ${provider.hotkey}\n`);
  expect(readEnrolment(home)).toEqual(JSON.parse(enrolment));
  expect(run('show')).toContain(`by ${provider.hotkey}, for 30 more days`);
});

it('accepts a signature that another wallet made over the text', () => {
  const { run } = hostAt();
  const asked = run('request').trim();
  const text = run('sign', '--text', asked).slice(0, -1);
  expect(text.split('\n')).toEqual([
    'podwright-enrol-v1',
    ID,
    expect.any(String),
    expect.any(String),
  ]);
  const signature = toHex(provider.sign(new TextEncoder().encode(text)));
  const enrolment = { ...JSON.parse(asked), hotkey: provider.hotkey, signature };
  expect(run('accept', JSON.stringify(enrolment))).toContain('enrolled by');
});

it('rejects an enrolment that is for another agent, not validly signed, or expired', async () => {
  const host = hostAt();
  const asked = host.run('request').trim();
  const enrolment = host.run('sign', '--seed-file', seedFile, asked).trim();
  const changed = (change: object) => JSON.stringify({ ...JSON.parse(enrolment), ...change });
  const stranger = createSigner(new Uint8Array(32).fill(8)).hotkey;
  for (const [run, text, message] of [
    [hostAt().run, enrolment, 'for another key'],
    [hostAt(host.home, OTHER_ID).run, enrolment, 'for another executor'],
    [host.run, changed({ hotkey: stranger }), 'not signed by'],
    [host.run, changed({ expires_ms: 2 ** 43 }), 'not signed by'],
    [host.run, changed({ more: 1 }), 'Unrecognized key'],
    [host.run, 'yes', 'one line of JSON'],
  ] as const) {
    expect(() => run('accept', text)).toThrow(message);
    expect(() => run('accept', text)).toThrow(EnrolError);
  }
  await host.clock.advance(366 * 86_400_000);
  expect(() => host.run('accept', enrolment)).toThrow('has expired');
  expect(readEnrolment(host.home)).toBeNull();
});

it('replaces an enrolment by another hotkey only on request', () => {
  const { run, home } = hostAt();
  const asked = run('request').trim();
  run('accept', run('sign', '--seed-file', seedFile, asked).trim());
  const otherSeed = join(folder, 'other.seed');
  writeFileSync(otherSeed, '08'.repeat(32), { mode: 0o600 });
  const other = run('sign', '--seed-file', otherSeed, asked).trim();
  const { hotkey } = JSON.parse(other);
  expect(() => run('accept', other)).toThrow(`by ${provider.hotkey}, not by ${hotkey}`);
  expect(readEnrolment(home)?.hotkey).toBe(provider.hotkey);
  expect(run('accept', '--replace', other)).toBe(`enrolled by ${hotkey}\n`);
});

it('rejects wrong usage', () => {
  const { run } = hostAt();
  const asked = run('request').trim();
  for (const days of ['0', '1826', 'x', '-1']) {
    expect(() => run('request', `--days=${days}`)).toThrow(`--days ${days}: must be 1 to 1825`);
  }
  for (const args of [[], ['what'], ['--what'], ['sign', asked]]) {
    expect(() => run(...args)).toThrow(EnrolError);
  }
  expect(run('--help')).toContain('Usage:');
  chmodSync(seedFile, 0o644);
  expect(() => run('sign', '--seed-file', seedFile, asked)).toThrow('may be read by others');
  expect(() => run('sign', '--seed-file', join(folder, 'no'), asked)).toThrow('ENOENT');
});
