/** Tests the import of cluster traces, from small files in the published formats. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ConfigError } from '#shared/runtime/config.ts';
import { DEFAULT_SCENARIO, readScenario } from '../scenarios/scenario.ts';
import { scenarioOfTraces } from './scenario-of-traces.ts';

const FIXTURES = join(import.meta.dirname, '../../../test/fixtures/traces');
const BASE = readScenario(DEFAULT_SCENARIO);
const SCALE = { providers: 10, renters: 200 };
const folder = mkdtempSync(join(tmpdir(), 'traces-'));
afterAll(() => rmSync(folder, { recursive: true }));

const load = (...files: string[]) =>
  scenarioOfTraces(
    files.map((file) => join(FIXTURES, file)),
    BASE,
    SCALE,
  );

/** Imports a file with a wrong line, and returns the message of the error. */
async function problemOf(text: string): Promise<string> {
  const file = join(folder, 'trace');
  writeFileSync(file, text);
  const error = await scenarioOfTraces([file], BASE, SCALE).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ConfigError);
  return (error as ConfigError).message.replaceAll(file, 'FILE');
}

describe('hosts of a trace', () => {
  it('become classes by model and number of cards', async () => {
    const { supply, demand } = await load('alibaba-2023-nodes.csv');
    expect(supply.classes.map(({ gpu, gpus, weight }) => [gpu, gpus, weight])).toEqual([
      ['Tesla P100-PCIE-16GB', 2, 2],
      ['NVIDIA A100-SXM4-80GB', 8, 1],
      ['Tesla V100-SXM2-32GB', 8, 1],
      ['Tesla T4', 4, 1],
    ]);
    expect(supply.regions).toEqual(BASE.supply.regions);
    expect(demand.jobs.map(({ gpu, gpus }) => [gpu, gpus])).toEqual(
      supply.classes.map(({ gpu, gpus }) => [gpu, gpus]),
    );
  });

  it.each([
    ['alibaba-2026-nodes.csv', 4],
    ['philly-machines.csv', 2],
  ])('are read from %s', async (file, kinds) => {
    expect((await load(file)).supply.classes).toHaveLength(kinds);
  });
});

describe('jobs of a trace', () => {
  it('keep their models, numbers of GPUs and durations', async () => {
    const { demand } = await load('alibaba-2023-nodes.csv', 'alibaba-2023-pods.csv');
    expect(
      demand.jobs.map(({ gpu, gpus, hours }) => [gpu, gpus, Number(hours.toFixed(3))]),
    ).toEqual([
      [undefined, 2, 2],
      ['Tesla P100-PCIE-16GB', 2, 1],
      ['Tesla V100-SXM2-32GB', 8, 10],
      ['Tesla T4', 1, 0.082],
      ['NVIDIA A100-SXM4-80GB', 8, 10],
    ]);
  });

  it('rent as often per host as in the trace', async () => {
    const { demand } = await load('alibaba-2023-nodes.csv', 'alibaba-2023-pods.csv');
    // Five jobs in 1.5 hours on 5 hosts, of which the edges do not count: 4.5 jobs in one hour, doubled for 10 hosts.
    const busyHours = (2 + 1 + 10 + 0.082 + 10) / 5;
    expect(200 / (demand.pause_hours + busyHours)).toBeCloseTo(9, 0);
  });

  it('become one rental for each worker', async () => {
    const { demand } = await load('alibaba-2026-nodes.csv', 'alibaba-2026-jobs.csv');
    expect(demand.jobs[0]).toMatchObject({ gpu: 'NVIDIA A10', gpus: 1, weight: 5 });
  });

  it('become one rental for each host of a job of Philly', async () => {
    const { demand, description } = await load('philly-machines.csv', 'philly-jobs.json');
    expect(demand.jobs.map(({ gpus, weight }) => [gpus, weight])).toEqual([
      [8, 2],
      [2, 1],
    ]);
    expect(description).toContain('2 rows');
  });

  it('need hosts with their GPUs', async () => {
    await expect(load('alibaba-2026-jobs.csv')).rejects.toThrow('second --trace');
  });

  it('need enough renters', async () => {
    const files = ['alibaba-2023-nodes.csv', 'alibaba-2023-pods.csv'];
    const work = scenarioOfTraces(
      files.map((file) => join(FIXTURES, file)),
      BASE,
      { providers: 100, renters: 3 },
    );
    await expect(work).rejects.toThrow(/need at least \d+ renters/);
  });
});

describe('a wrong trace', () => {
  it.each([
    [
      'a wrong number',
      'sn,gpu,model\na,2,P100\nb,two,P100\n',
      '--trace FILE:3: gpu: "two" must be a number',
    ],
    ['too many GPUs', 'sn,gpu,model\na,17,P100\n', '--trace FILE:2: GPUs: 17 is not'],
    ['no model', 'sn,gpu,model\na,2,\n', '--trace FILE:2: model: a host with GPUs has no model'],
    ['an unknown model', 'sn,gpu,model\na,2,Z80\n', 'the GPU model "Z80" is unknown'],
    ['other columns', 'a,b\n1,2\n', '--trace FILE:1: these columns belong to no known trace'],
    ['a short row', 'sn,gpu,model\na,2\n', 'FILE:2: Invalid Record Length'],
    ['no rows', 'sn,gpu,model\n', 'neither hosts nor jobs'],
    ['no end', readFileSync(join(FIXTURES, 'philly-jobs.json'), 'utf8').slice(0, 900), 'FILE:'],
    [
      'a wrong field',
      '[\n{"submitted_time": "x", "attempts": []}\n]',
      '--trace FILE:2: submitted_time: "x" is not a time',
    ],
    ['no JSON', '[\n{"a": nothing}\n]', 'FILE:2: '],
  ])('is refused with %s', async (_, text, message) => {
    expect(await problemOf(text)).toContain(message);
  });
});
