/** Kills an agent during a build. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { type PodsProcess, startPodsProcess } from '../../../test/fakes/agents/pods-process.ts';
import { mustRun } from '../../../test/fakes/agents/real-host.ts';
import { eventually } from '../../../test/fakes/eventually.ts';

const BASE = 'FROM podwright.local/base:1';

let scene: PodsProcess;
beforeAll(async () => {
  scene = await startPodsProcess();
});
afterAll(() => scene.close());

it('repeats a build after the agent was killed, and removes the first attempt’s objects', async () => {
  const marker = systemRandom.uuid();
  const dockerfile = `${BASE}\nRUN echo ${marker}; sleep 4\nCMD ["sleep", "1000"]`;
  const id = await scene.put({ image: { dockerfile } });
  const labels = ['--filter', `label=io.podwright.executor=${scene.executorId}`];
  const steps = async () =>
    (
      await mustRun('docker', 'ps', '-q', ...labels, '--filter', 'label=io.podwright.kind=build')
    ).trim();
  await eventually('the step', async () => (await steps()) !== '');
  await scene.agent().kill();
  await eventually('the end of the step', async () => (await steps()) === '');
  await scene.restart();
  // The message includes the agent's own text if the pod does not run.
  const { phase, message } = await scene.settled(id);
  expect([phase, message]).toEqual(['running', '']);
  const unnamed = ['--filter', 'dangling=true'];
  expect(await mustRun('docker', 'images', '-q', ...labels, ...unnamed)).toBe('');
  await scene.remove(id);
});
