import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { agentArguments } from '#shared/runtime/node-process.ts';

/** Runs the command without any variables: a removal would fail without them. */
function removeAll(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    agentArguments('remove-all', ...args),
    { env: { PATH: process.env['PATH'] ?? '' }, encoding: 'utf8' },
  );
  return { status, stdout, stderr };
}

it('prints its help and removes nothing', () => {
  const usage = expect.stringMatching(/^Usage: .*remove-all\n[\s\S]*AGENT_EXECUTOR_ID/);
  expect(removeAll('--help')).toEqual({ status: 0, stdout: usage, stderr: '' });
  expect(removeAll('--force')).toEqual({ status: 2, stdout: '', stderr: usage });
  const alone = removeAll();
  expect(alone.status).toBe(6);
  expect(alone.stderr).toMatch(/^podwright-agent: .*AGENT_EXECUTOR_ID/s);
});
