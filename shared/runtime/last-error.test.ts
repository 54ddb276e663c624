import { expect, it } from 'vitest';
import { lastErrorIn } from './last-error.ts';

const line = (entry: object) => `${JSON.stringify(entry)}\n`;

it('returns the last lines that are not log lines', () => {
  const refused = 'podwright-agent: configuration refused:\n  AGENT_PORT (0): too small\n';
  const output = `${line({ level: 30, msg: 'serving' })}${refused}`;
  expect(lastErrorIn(output)).toBe(
    'podwright-agent: configuration refused:\nAGENT_PORT (0): too small',
  );
});

it('returns the message of an uncaught error without its stack', () => {
  const output = `node:internal/x:1
    throw error;
    ^

Error: the disk is full
    at open (file:///x.ts:3:1)

Node.js v26.10.0
`;
  expect(lastErrorIn(output)).toBe('Error: the disk is full');
});

it('returns the last logged error if there is no other output', () => {
  const output = [
    line({ level: 50, msg: 'first' }),
    line({ level: 60, msg: 'store failed', err: { message: 'disk I/O error' } }),
    line({ level: 30, msg: 'shutting down' }),
  ].join('');
  expect(lastErrorIn(output)).toBe('store failed: disk I/O error');
  expect(lastErrorIn(line({ level: 30, msg: 'serving' }))).toBeNull();
  expect(lastErrorIn('')).toBeNull();
});

it('limits the length', () => {
  expect(lastErrorIn('x'.repeat(2_000))).toHaveLength(401);
});
