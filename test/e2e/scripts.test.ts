import { globSync } from 'node:fs';
import { expect, it } from 'vitest';
import { runCommand } from '#shared/run-command.ts';

it('has shell scripts that shellcheck finds nothing in', async () => {
  const bounds = { timeoutMs: 30_000, maxOutputBytes: 1024 * 1024 };
  const scripts = globSync('systemd/**/*.sh');
  expect(scripts.length).toBeGreaterThan(3);
  const { stdout } = await runCommand('shellcheck', ['--external-sources', ...scripts], bounds);
  expect(stdout).toBe('');
});
