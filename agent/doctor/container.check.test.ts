import { expect, it } from 'vitest';
import { findingsOf } from '#shared/check/doctor.ts';
import { CONTAINER_CHECKS, type ContainerFacts } from './container.check.ts';

const RAN: ContainerFacts['verified'] = {
  value: { ok: true, reason_code: null, simulated: false, steps: [] },
};
const figures = (facts: Partial<ContainerFacts>) =>
  findingsOf(CONTAINER_CHECKS, {
    verified: RAN,
    gpuCount: 0,
    quota: { value: 'poll' },
    usage: { value: 2 },
    ...facts,
  }).find(({ id }) => id === 'pod-figures');

it('reports the version of cgroups from which pods’ usage is read', () => {
  expect(figures({})).toMatchObject({
    status: 'ok',
    finding: expect.stringContaining('version 2'),
  });
});

it('reports a probe that ran into a deadline as unknown', () => {
  const steps = [{ name: 'start', status: 'failed' as const, ms: 60_000, message: 'no answer' }];
  const failed = { ok: false, reason_code: 'CONTAINER_START_FAILED', simulated: false, steps };
  const probed = (verified: ContainerFacts['verified']) =>
    findingsOf(CONTAINER_CHECKS, {
      verified,
      gpuCount: 0,
      quota: { value: 'poll' },
      usage: { value: 2 },
    })[0];
  expect(probed({ value: { ...failed, timedOut: true } })).toMatchObject({
    status: 'unknown',
    timed_out: true,
  });
  expect(probed({ value: failed })).toMatchObject({ status: 'fail', timed_out: false });
});

it('warns if usage must be queried from the engine, and reports unknown if no container starts', () => {
  const usage = { problem: 'process 12 belongs to another container in this namespace' };
  expect(figures({ usage })).toMatchObject({
    status: 'warn',
    finding: expect.stringContaining('another container'),
    remedy: expect.stringContaining('--pid=host'),
  });
  expect(figures({ usage, verified: usage })?.status).toBe('unknown');
});
