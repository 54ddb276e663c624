import { expect, it } from 'vitest';
import { runCommand } from '#shared/runtime/run-command.ts';
import { shellVariables, variablesIn } from './home.ts';

it('writes variables that this program and a shell read back unchanged', async () => {
  const variables = { AGENT_HOME: "/home/o'neil/a b", AGENT_GPU: 'simulated', A: '$(id) "x" \\' };
  const text = shellVariables(variables);
  expect(variablesIn(text)).toEqual(variables);
  expect(variablesIn(`# a note\n${text}\nnothing\n`)).toEqual(variables);
  const bounds = { timeoutMs: 10_000, maxOutputBytes: 10_000, env: {} };
  const said = `${text}printf '%s|%s|%s' "$AGENT_HOME" "$AGENT_GPU" "$A"`;
  const { stdout } = await runCommand('/bin/sh', ['-c', said], bounds);
  expect(stdout.split('|')).toEqual(Object.values(variables));
});
