/** Commands that a validator runs in a pod of a real agent, for a renter who allows it. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { INSPECT_SCRIPT, memorySeen } from '../../validator/inspection/rental-probe/probe-spec.ts';
import { createRunInPod } from '../../validator/inspection/reports/pod-terminal.ts';
import { startTerminalHost, type TerminalHost } from '../fakes/agents/terminal-host.ts';
import { checkRun } from '../fixtures/check-run.ts';

const STARTS_WITHIN_MS = 300_000;
const { executor } = checkRun({ atMs: 0 }).facts;

let host: TerminalHost;
beforeAll(async () => {
  host = await startTerminalHost();
}, STARTS_WITHIN_MS);
afterAll(() => host.close());

it('returns what the script of the rental probe prints in the pod, and rejects an unknown pod', async () => {
  const run = createRunInPod({
    connectTo: () => host.agent().connect,
    clock: systemClock,
    random: systemRandom,
  });
  const output = await run(executor, host.pod.id, INSPECT_SCRIPT);
  expect(memorySeen(output)).toBeGreaterThan(0);
  expect(output).toMatch(/^cards=\d+$/m);
  expect(output).toMatch(/^disk=\d+$/m);
  expect(output).not.toContain('printf');
  await expect(run(executor, executor.id, 'true')).rejects.toThrow();
});
