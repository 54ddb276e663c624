import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ConfigError } from '#shared/runtime/config.ts';
import { agentArguments } from '#shared/runtime/node-process.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { openHome } from './database.ts';

const OPENING = { nowMs: 1_795_762_800_000, sshPorts: () => ({}), openKeys: null };

it('ends the agent with one line if the home cannot be created or is in use', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-'));
  const home = join(folder, 'file', 'home');
  try {
    writeFileSync(join(folder, 'file'), '');
    expect(() => openHome(home, OPENING)).toThrow(ConfigError);
    const taken = openHome(join(folder, 'taken'), OPENING);
    const start = (at: string) => {
      const env = { AGENT_EXECUTOR_ID: '00000000-0000-4000-8000-00000000000e', AGENT_HOME: at };
      const bounds = { timeoutMs: 90_000, maxOutputBytes: 100_000, env };
      return runCommand(process.execPath, agentArguments(), bounds);
    };
    const [without, second] = await Promise.all([start(home), start(join(folder, 'taken'))]);
    taken.close();
    expect(without).toMatchObject({ exitCode: 6, stderr: expect.stringMatching(/^.*\n$/) });
    expect(without.stderr).toContain(`podwright-agent: AGENT_HOME ${home} cannot be written: `);
    // Exit status 1, because a retry may succeed, unlike with a wrong variable.
    expect(second).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/^.*\n$/) });
    expect(second.stderr).toMatch(/^podwright-agent: another agent uses .*: stop the other agent/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
