import { expect, it } from 'vitest';
import { AGENT_CHECKS, readOptions } from './doctor.ts';

it('parses its options strictly', () => {
  const none = { json: false, help: false, container: true, address: null, timeFrom: null };
  expect(readOptions([])).toMatchObject(none);
  expect(readOptions(['--json', '--no-container', '--address', 'fd00::2'])).toMatchObject({
    json: true,
    container: false,
    address: 'fd00::2',
  });
  expect(readOptions(['--address', '[fd00::2]'])).toMatchObject({ address: 'fd00::2' });
  for (const args of [['--nope'], ['extra'], ['--address', 'a b'], ['--time-from', 'file:///x']]) {
    expect(() => readOptions(args)).toThrow();
  }
});

it('has one definition for each check id', () => {
  const ids = AGENT_CHECKS.map(({ id }) => id);
  expect(ids).toEqual([...new Set(ids)]);
});
