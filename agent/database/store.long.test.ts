import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ConfigError } from '#shared/runtime/config.ts';
import { agentArguments } from '#shared/runtime/node-process.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { lockExecutor } from '../host/machine.ts';
import { openHome } from './database.ts';

const EXECUTOR = '00000000-0000-4000-8000-00000000000e';
const OPENING = { nowMs: 1_795_762_800_000, sshPorts: () => ({}), openKeys: null };

it('ends the agent with one line if the home cannot be created, or the home or the executor id is in use', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-'));
  const home = join(folder, 'file', 'home');
  try {
    writeFileSync(join(folder, 'file'), '');
    expect(() => openHome(home, OPENING)).toThrow(ConfigError);
    const taken = openHome(join(folder, 'taken'), OPENING);
    const start = (at: string) => {
      const env = { AGENT_EXECUTOR_ID: EXECUTOR, AGENT_HOME: at };
      const bounds = { timeoutMs: 90_000, maxOutputBytes: 100_000, env };
      return runCommand(process.execPath, agentArguments(), bounds);
    };
    // As a running agent with another home has it.
    const other = await lockExecutor(EXECUTOR);
    const homes = [home, join(folder, 'taken'), join(folder, 'copy')];
    const [without, second, copy] = await Promise.all(homes.map(start));
    other.close();
    taken.close();
    expect(copy).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/^.*\n$/) });
    expect(copy?.stderr).toMatch(/^podwright-agent: another agent with AGENT_EXECUTOR_ID /);
    expect(without).toMatchObject({ exitCode: 6, stderr: expect.stringMatching(/^.*\n$/) });
    expect(without?.stderr).toContain(`podwright-agent: AGENT_HOME ${home} cannot be written: `);
    // Exit status 1, because a retry may succeed, unlike with a wrong variable.
    expect(second).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/^.*\n$/) });
    expect(second?.stderr).toMatch(/^podwright-agent: another agent uses .*: stop the other agent/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
