import { expect, it } from 'vitest';
import { findingsOf } from '#shared/check/doctor.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { readOptions } from './doctor.ts';
import { DISK_CHECKS, type DiskFacts, readDiskFacts } from './host.check.ts';

const GIB = 2 ** 30;
const diskFindings = (facts: DiskFacts) => findingsOf(DISK_CHECKS, facts);
const use = (used: number, inodesUsed: number | null = 0.1) => ({
  value: { path: '/var/lib/docker', used, freeBytes: 10 * GIB, inodesUsed },
});

it.each([
  [0.2, 0.1, 'ok'],
  [0.849, null, 'ok'],
  [0.85, 0.1, 'warn'],
  [0.2, 0.9, 'warn'],
  [0.95, 0.1, 'fail'],
  [0.2, 0.99, 'fail'],
])('reports a disk with %d of bytes and %d of inodes in use as %s', (used, inodes, status) => {
  const [engine, home] = diskFindings({
    engine: use(used, inodes),
    home: { problem: 'hangs' },
    minFreeGib: 0,
  });
  expect(engine?.status).toBe(status);
  expect(home?.status).toBe('unknown');
});

it('requires the free space of the default check policy, and prints it beside the measured space', () => {
  const { minFreeGib } = readOptions([]);
  expect(minFreeGib).toBe(readOptions(['--min-free-disk', '100']).minFreeGib);
  const judged = (freeGib: number, minimum: number) => {
    const disk = { value: { ...use(0.5).value, freeBytes: freeGib * GIB } };
    return diskFindings({ engine: disk, home: disk, minFreeGib: minimum });
  };
  expect(judged(99.9, minFreeGib)).toMatchObject([
    {
      status: 'fail',
      required: expect.stringContaining('100 GiB'),
      finding: expect.stringContaining('99.9 GiB free of the required 100 GiB'),
    },
    { status: 'ok' },
  ]);
  expect(judged(100, minFreeGib)[0]?.status).toBe('ok');
  expect(judged(1, readOptions(['--min-free-disk', '0']).minFreeGib)[0]?.status).toBe('ok');
  for (const wrong of ['', 'x', '-1', '1.5']) {
    expect(() => readOptions([`--min-free-disk=${wrong}`])).toThrow('not a number of GiB');
  }
});

it('reads the disks of this host, also for a folder that does not exist yet', async () => {
  const home = '/var/lib/no-such-folder/deeper';
  const facts = await readDiskFacts({
    clock: systemClock,
    runCommand,
    engineRoot: '/',
    home,
    minFreeGib: 0,
  });
  expect(facts.engine).toMatchObject({ value: { path: '/' } });
  expect(facts.home).toMatchObject({ value: { path: '/var/lib' } });
  const { used, freeBytes } =
    'value' in facts.engine ? facts.engine.value : { used: -1, freeBytes: 0 };
  expect(used).toBeGreaterThan(0);
  expect(used).toBeLessThanOrEqual(1);
  expect(freeBytes).toBeGreaterThan(0);
});

it('reports why a disk cannot be read', async () => {
  const options = { clock: systemClock, runCommand, home: '/', minFreeGib: 0 };
  const facts = await readDiskFacts({ ...options, engineRoot: '/no/such/place' });
  expect(diskFindings(facts)[0]).toMatchObject({
    status: 'unknown',
    finding: expect.stringContaining('No such file'),
  });
});
