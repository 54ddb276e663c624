import { expect, it } from 'vitest';
import { ConfigError } from '#shared/config.ts';
import { readConfig } from './config.ts';

it('has defaults for all, and names what it does not know', () => {
  expect(readConfig({})).toMatchObject({
    SSH_SNAPSHOT: '/var/lib/podwright/ssh/gateway.json',
    SSH_HOST: '0.0.0.0',
  });
  expect(() => readConfig({ SSH_HOTS: 'x' })).toThrow(ConfigError);
  expect(() => readConfig({ SSH_SNAPSHOT: 'relative' })).toThrow('Not an absolute path');
});

it('may itself be started from within an SSH session', () => {
  expect(() => readConfig({ SSH_CONNECTION: '1 2 3 4', SSH_TTY: '/dev/pts/0' })).not.toThrow();
});
