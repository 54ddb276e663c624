import { expect, it } from 'vitest';
import { environmentText, readEnvironment, readPorts } from './container-text.ts';

it('reads back the environment that it writes', () => {
  const environment = { B: 'x=y', A: '', _c1: ' spaces ' };
  expect(environmentText(environment)).toBe('A=\nB=x=y\n_c1= spaces ');
  expect(readEnvironment(environmentText(environment))).toEqual({
    value: environment,
    problems: [],
  });
});

it.each([
  ['A', ['Line 1 is not NAME=value.']],
  ['A=1\n\n1B=2', ['Line 3: “1B” is not a name of a variable.']],
  ['=1', ['Line 1: “” is not a name of a variable.']],
  ['A=1\nA=2', ['Line 2 sets A again.']],
])('reports the environment %j', (text, problems) =>
  expect(readEnvironment(text).problems).toEqual(problems),
);

it('reports every line that it cannot read, and reads the others', () => {
  expect(readEnvironment('# set by hand\nA=1\nno\n B=2\n3=4')).toEqual({
    value: { A: '1', B: '2' },
    problems: ['Line 3 is not NAME=value.', 'Line 5: “3” is not a name of a variable.'],
  });
});

it('counts the problems above ten', () => {
  const { problems } = readEnvironment('x\n'.repeat(12));
  expect(problems).toHaveLength(11);
  expect(problems.at(-1)).toBe('2 further lines cannot be read.');
});

it.each([
  ['22, 8000 9000', { value: [22, 8000, 9000], problems: [] }],
  ['', { value: [], problems: [] }],
  ['0', { value: [], problems: ['“0” is not a port. Ports are 1 to 65535.'] }],
  ['1e3', { value: [], problems: ['“1e3” is not a port. Ports are 1 to 65535.'] }],
  ['22,22', { value: [22], problems: ['Port 22 is listed twice.'] }],
])('ports %j: %j', (text, read) => expect(readPorts(text)).toEqual(read));
