import { expect, it } from 'vitest';
import { splitShellWords } from './shell-words.ts';

it.each([
  ['', []],
  ['  \t ', []],
  ['sleep infinity', ['sleep', 'infinity']],
  ['  a   b\tc ', ['a', 'b', 'c']],
  [`bash -c 'a && b; echo "$HOME"'`, ['bash', '-c', 'a && b; echo "$HOME"']],
  ['sh -c "echo \\"x\\" \\$HOME \\n"', ['sh', '-c', 'echo "x" $HOME \\n']],
  [`--token='' ""`, ['--token=', '']],
  ['a\\ b \\; \\\\', ['a b', ';', '\\']],
  [`it"'"s 'a'"b"c`, ["it's", 'abc']],
  ['--ip=* --glob={a,b} ~ #x', ['--ip=*', '--glob={a,b}', '~', '#x']],
  ["'two\nlines'", ['two\nlines']],
  ['ünï cödé', ['ünï', 'cödé']],
])('splits %j into %j', (text, words) => {
  expect(splitShellWords(text)).toEqual({ words });
});

it.each([
  'a;b',
  'a && b',
  'a|b',
  'a > f',
  'a < f',
  '$HOME',
  '$(id)',
  '`id`',
  '(a)',
  'a\nb',
  'a\rb',
])('rejects the unquoted metacharacter in %j', (text) => {
  expect(splitShellWords(text)).toEqual({ problem: expect.stringContaining('unquoted') });
});

it.each(["'a", '"a', 'a\\', '"a\\"', `'a' "`])('rejects the unfinished text %j', (text) => {
  expect(splitShellWords(text)).toEqual({ problem: expect.stringContaining('without its end') });
});

it('splits a long text in linear time', () => {
  const text = '"'.concat('\\"'.repeat(200_000), '"');
  expect(splitShellWords(text)).toEqual({ words: ['"'.repeat(200_000)] });
});
