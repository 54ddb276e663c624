import { expect, it } from 'vitest';
import { readOptions } from './options.ts';

it('reads its options strictly', () => {
  const none = { json: false, help: false, container: true, address: null, timeFrom: null };
  expect(readOptions([])).toMatchObject(none);
  expect(readOptions(['--json', '--no-container', '--address', 'fd00::2'])).toMatchObject({
    ...{ json: true, container: false, address: 'fd00::2' },
  });
  expect(readOptions(['--address', '[fd00::2]'])).toMatchObject({ address: 'fd00::2' });
  for (const args of [['--nope'], ['extra'], ['--address', 'a b'], ['--time-from', 'file:///x']]) {
    expect(typeof readOptions(args)).toBe('string');
  }
});
