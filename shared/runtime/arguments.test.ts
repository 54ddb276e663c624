import { expect, it } from 'vitest';
import { readArguments, requireNone } from './arguments.ts';
import { ConfigError } from './config.ts';

const OPTIONS = {
  port: { type: 'string', default: '8080' },
  log: { type: 'string', multiple: true },
  json: { type: 'boolean' },
} as const;
const read = (...args: string[]) => readArguments(args, OPTIONS, 1);

it('returns values and words', () => {
  expect(read('list', '--port=1', '--log', 'a', '--log', 'b', '--json')).toEqual({
    values: { port: '1', log: ['a', 'b'], json: true },
    words: ['list'],
    problems: [],
  });
  expect(read()).toEqual({ values: { port: '8080' }, words: [], problems: [] });
  expect(read('--port=-1', '--', '--json')).toEqual({
    values: { port: '-1' },
    words: ['--json'],
    problems: [],
  });
});

it('reports all problems at once, and returns the other arguments', () => {
  expect(read('list', '--prot', '--json=yes', '--log', '--json', 'x', '-v')).toEqual({
    values: { port: '8080', json: true },
    words: ['list', 'x'],
    problems: [
      'unknown option --prot: did you mean --port?',
      '--json takes no value: write --json',
      '--log needs a value: write --log=VALUE',
      'unknown option -v: see --help',
      'unexpected x: see --help',
    ],
  });
});

it('does not report a word that may be the value of an unknown option', () => {
  expect(read('list', '--prot', '80').problems).toEqual([
    'unknown option --prot: did you mean --port?',
  ]);
  expect(read('--constructor', '--toString=1').problems).toHaveLength(2);
});

it('throws one error with all problems', () => {
  requireNone([]);
  expect(() => requireNone(['a', 'b'])).toThrow(new ConfigError('a\nb'));
});
