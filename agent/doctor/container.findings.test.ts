import { expect, it } from 'vitest';
import type { ContainerFacts } from './container.facts.ts';
import { containerFindings } from './container.findings.ts';

const RAN: ContainerFacts['verified'] = {
  value: { ok: true, reason_code: null, simulated: false, steps: [] },
};
const figures = (facts: Partial<ContainerFacts>) =>
  containerFindings({
    ...{ verified: RAN, gpuCount: 0, quota: { value: 'poll' }, usage: { value: 2 } },
    ...facts,
  }).find(({ id }) => id === 'pod-figures');

it('tells from which control groups the figures of pods come', () => {
  expect(figures({})).toMatchObject({
    status: 'ok',
    finding: expect.stringContaining('version 2'),
  });
});

it('warns where the engine has to be asked for each pod, and knows nothing where none could run', () => {
  const usage = { problem: 'process 12 is another one here' };
  expect(figures({ usage })).toMatchObject({
    status: 'warn',
    finding: expect.stringContaining('another one'),
    remedy: expect.stringContaining('--pid=host'),
  });
  expect(figures({ usage, verified: usage })?.status).toBe('unknown');
});
