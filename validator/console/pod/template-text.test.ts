import { expect, it } from 'vitest';
import { environmentText, parseEnvironment, parsePorts } from './template-text.ts';

it('reads back the environment that it writes', () => {
  const environment = { B: 'x=y', A: '', _c1: ' spaces ' };
  expect(environmentText(environment)).toBe('A=\nB=x=y\n_c1= spaces ');
  expect(parseEnvironment(environmentText(environment))).toEqual({ value: environment });
});

it.each([
  ['A', 'Line 1 has no “=”. Write NAME=value.'],
  ['A=1\n\n1B=2', 'Line 3: “1B” is not a name of a variable.'],
  ['A=1\nA=2', 'Line 2 sets A again.'],
])('rejects the environment %j', (text, problem) =>
  expect(parseEnvironment(text)).toEqual({ problem }),
);

it.each([
  ['22, 8000 9000', { value: [22, 8000, 9000] }],
  ['', { value: [] }],
  ['0', { problem: '“0” is not a port. Ports are 1 to 65535.' }],
  ['1e3', { problem: '“1e3” is not a port. Ports are 1 to 65535.' }],
  ['22,22', { problem: 'Port 22 is listed twice.' }],
])('ports %j: %j', (text, parsed) => expect(parsePorts(text)).toEqual(parsed));
