import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { agentArguments } from '#shared/runtime/node-process.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { PolicyError, readPolicyFile } from './policy-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'podwright-policy-'));
afterAll(() => rmSync(folder, { recursive: true }));

function fileWith(text: string): string {
  const path = join(folder, 'policy.json');
  writeFileSync(path, text);
  return path;
}

it('reads a policy file', () => {
  const path = fileWith('{"registries":{"allow":["docker.io"]},"max_pods":2}');
  expect(readPolicyFile(path)).toMatchObject({
    registries: { allow: ['docker.io'], deny: [] },
    max_pods: 2,
  });
});

it.each([
  ['{"max_pod": 2}', 'max_pod'],
  ['{"registries":{"allow":["a b"]}}', 'registries.allow.0'],
  ['{"max_pids":"many","max_ports":65}', 'max_pids'],
  ['{', 'JSON'],
  ['[]', 'the whole'],
])('names what is wrong in %s', (text, named) => {
  const read = () => readPolicyFile(fileWith(text));
  expect(read).toThrow(PolicyError);
  expect(read).toThrow(named);
});

it('says that the file is missing, or none', () => {
  expect(() => readPolicyFile(join(folder, 'none.json'))).toThrow(/AGENT_POLICY .*ENOENT/);
  expect(() => readPolicyFile(folder)).toThrow(/not a file/);
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  expect(() => readPolicyFile(pipe)).toThrow(/not a file/);
});

it('keeps the agent from starting on a wrong file, before anything is made', async () => {
  const env = {
    AGENT_EXECUTOR_ID: '00000000-0000-4000-8000-00000000000e',
    AGENT_HOME: join(folder, 'home'),
    AGENT_POLICY: fileWith('{"max_pids":"many"}'),
  };
  const bounds = { timeoutMs: 30_000, maxOutputBytes: 100_000, env };
  for (const args of [[], ['--check-config']]) {
    const run = await runCommand(process.execPath, agentArguments(...args), bounds);
    expect(run).toMatchObject({ exitCode: 6, stderr: expect.stringContaining('max_pids') });
  }
  expect(() => rmSync(env.AGENT_HOME, { recursive: true })).toThrow('ENOENT');
});
