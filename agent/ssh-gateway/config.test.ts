import { expect, it } from 'vitest';
import { inspectConfig } from '#shared/runtime/config.ts';
import { readConfig, SSH_CONFIG } from './config.ts';

it('has defaults for all variables, and names invalid ones', () => {
  expect(readConfig({})).toMatchObject({
    SSH_SNAPSHOT: '/var/lib/podwright/ssh/gateway.json',
    SSH_HOST: '0.0.0.0',
  });
  expect(() => readConfig({ SSH_SNAPSHOT: 'relative' })).toThrow('Not an absolute path');
});

it('accepts the variables of an SSH session', () => {
  const { warnings } = inspectConfig(SSH_CONFIG, {
    SSH_CONNECTION: '1 2 3 4',
    SSH_TTY: '/dev/pts/0',
  });
  expect(warnings).toEqual([]);
});
