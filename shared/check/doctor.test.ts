import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DeadlineError, systemClock } from '../runtime/clock.ts';
import { createCommandProgress } from '../runtime/progress.ts';
import { fail, type Outcome, ok, unknown, unlessTimedOut, warn } from './check.ts';
import {
  type Doctor,
  type DoctorOptions,
  type Finding,
  findingOf,
  findingsOf,
  jsonReport,
  runDiag,
  runDoctor,
  textReport,
  UsageError,
} from './doctor.ts';
import { problemOf } from './observe.ts';

const finding = (id: string, outcome: Outcome) =>
  findingOf({ id, required: `a good ${id}` }, outcome);
const FINDINGS = [
  finding('docker', ok('Docker 27')),
  finding('nvidia-driver', fail('said \u001b[2Jthis\nand \u202ethat', 'reboot')),
];

it('prints a line for each finding, with requirement and remedy below a fault, without control characters', () => {
  expect(textReport(FINDINGS, false)).toBe(
    [
      'ok       docker         Docker 27',
      'fail     nvidia-driver  said  [2Jthis and  that',
      '         required: a good nvidia-driver',
      '         → reboot',
      '',
      '1 ok, 0 warn, 1 fail, 0 unknown',
      '',
    ].join('\n'),
  );
});

it('colours only the status, and only on request', () => {
  expect(textReport(FINDINGS, true)).toContain('\u001b[31mfail   \u001b[0m  nvidia-driver');
});

it('prints findings unchanged as JSON', () => {
  expect(JSON.parse(jsonReport(FINDINGS))).toEqual(FINDINGS);
});

it('leaves out checks that do not apply', () => {
  const definition = { detects: 'x', required: 'y', judge: (n: number) => ok(String(n)) };
  const checks = [
    { ...definition, id: 'always' },
    { ...definition, id: 'odd', applies: (n: number) => n % 2 === 1 },
  ];
  expect(findingsOf(checks, 1).map(({ id }) => id)).toEqual(['always', 'odd']);
  expect(findingsOf(checks, 2)).toEqual([
    { id: 'always', status: 'ok', required: 'y', finding: '2', timed_out: false, remedy: null },
  ]);
});

describe('a doctor', () => {
  const run = async (
    args: readonly string[],
    { findings = [], ...change }: Partial<Doctor> & { findings?: Finding[] } = {},
  ) => {
    let [out, error] = ['', ''];
    const doctor: Doctor = {
      program: 'prog',
      help: 'the help\n',
      readOptions: () => ({ json: false, help: false }),
      step: 'checking',
      examine: async () => findings,
      archive: async () => ({ parts: [], redact: (text) => text }),
      ...change,
    };
    const terminal = {
      out(text: string) {
        out += text;
      },
      error(text: string) {
        error += text;
      },
      progress: createCommandProgress(systemClock, { write: () => true }),
      colours: false,
      folder: '.',
    };
    const status = await (args[0] === 'diag'
      ? runDiag('agent', doctor, args.slice(1), terminal)
      : runDoctor(doctor, args, terminal));
    return { status, out, error };
  };
  const options = (change: Partial<DoctorOptions>) => ({
    readOptions: () => ({ json: false, help: false, ...change }),
  });

  it('exits with 1 only if a check fails', async () => {
    const warned = [finding('a', warn('slow', 'wait')), finding('c', unknown('hidden'))];
    const failed = [...warned, finding('b', fail('broken', 'mend it'))];
    expect(await run([], { findings: warned })).toMatchObject({ status: 0 });
    expect(await run([], { findings: failed, ...options({ json: true }) })).toEqual({
      status: 1,
      out: jsonReport(failed),
      error: '',
    });
  });

  it('exits with 3 if no check fails, but one ran into its time limit', async () => {
    const late = problemOf(new Error('fetch failed', { cause: new DeadlineError('no answer') }));
    const findings = [finding('a', unlessTimedOut(late, fail('no answer', 'start it')))];
    expect(findings[0]).toMatchObject({ status: 'unknown', timed_out: true, remedy: 'start it' });
    expect(await run([], { findings })).toMatchObject({ status: 3 });
    const failed = [...findings, finding('b', fail('broken', 'mend it'))];
    expect(await run([], { findings: failed })).toMatchObject({ status: 1 });
    const refused = problemOf(new Error('ECONNREFUSED'));
    expect(unlessTimedOut(refused, fail('no answer', 'start it'))).toMatchObject({
      status: 'fail',
    });
  });

  it('exits with 2 for wrong usage, and prints the help only for wrong options', async () => {
    const wrong = () => {
      throw new Error('no such option');
    };
    expect(await run([], { readOptions: wrong })).toEqual({
      status: 2,
      out: '',
      error: 'prog: no such option\n\nthe help\n',
    });
    const examine = () => Promise.reject(new UsageError('nothing to examine'));
    expect(await run([], { examine })).toMatchObject({
      status: 2,
      error: 'prog: nothing to examine\n',
    });
    expect(await run([], options({ log: ['x'] }))).toMatchObject({ status: 2 });
    expect(await run([], options({ help: true }))).toEqual({
      status: 0,
      out: 'the help\n',
      error: '',
    });
  });

  it('writes the same archive for doctor --archive and diag', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'podwright-doctor-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const archive = async (logs: readonly string[]) => ({
      redact: (text: string) => text,
      parts: [{ name: 'logs.txt', collect: async () => logs.join() }],
    });
    const [one, other] = [join(folder, 'one'), join(folder, 'other')];
    const log = join(folder, 'none.log');
    const asOption = await run([], { archive, ...options({ archive: one, log: [log] }) });
    const asCommand = await run(['diag', '--out', other, '--log', log], { archive });
    // The compressed size depends on the times of the files.
    const withoutSize = (out: string) => out.replace(/\d+ bytes/, 'N bytes');
    const out = withoutSize(asCommand.out).replace(other, one);
    expect({ ...asOption, out: withoutSize(asOption.out) }).toEqual({ ...asCommand, out });
    expect(asOption.out).toMatch(/^ {2}logs.txt, \d+ characters\n.*one, \d+ bytes\n$/);
    expect(asOption.error).toBe(`prog: --log: there is no file ${log}\n`);
    const again = await run([], { archive, ...options({ archive: one }) });
    expect(again).toMatchObject({ status: 1, error: expect.stringContaining('--archive') });
    expect(await run(['diag', '--nope'], { archive })).toMatchObject({ status: 2 });
    expect((await run(['diag', '--help'], { archive })).out).toContain('npm run agent -- diag');
  });
});
