import { expect, it } from 'vitest';
import { parseDockerfile } from '#shared/api/agent/dockerfile.ts';
import { buildText } from './build-context.ts';
import { createBuildLines } from './build-log.ts';
import { createBuildOutput } from './build-output.ts';

const LABELS = { 'io.podwright.managed': '1' };
const TEXT = '# mine\nFROM a AS one\n\nRUN x && \\\n  y\nFROM b\nRUN z';

function outputOf(text: string) {
  const parsed = parseDockerfile(text);
  if ('problem' in parsed) throw new Error(parsed.problem);
  const built = buildText(parsed, () => 'sha256:0', LABELS);
  const output = createBuildOutput(built);
  const lines = createBuildLines(() => 0);
  lines.useEdit(output.edit);
  return { built, output, lines };
}

const OUTPUT = [
  'Step 1/6 : FROM sha256:0 AS one\n ---> 00aa\nStep 2/6 : LABEL io.podwright.managed="1"\n',
  ' ---> Running in 00aa\nRemoving intermediate container 00aa\n ---> 00ab\n',
  'Step 3/6 : RUN x &&   y\n ---> Running in 00ac\nStep 4/9 : of its own\nout\n',
];

it('numbers steps as in the renter’s Dockerfile, and leaves their output unchanged', () => {
  const { lines } = outputOf(TEXT);
  for (const part of OUTPUT) lines.write(part);
  const shown = lines.list().map(({ log }) => log);
  expect(shown.filter((log) => log.startsWith('Step'))).toEqual([
    'Step 1/4 : FROM sha256:0 AS one\n',
    'Step 2/4 : RUN x &&   y\n',
    'Step 4/9 : of its own\n',
  ]);
  expect(shown.join('')).not.toContain('io.podwright');
  expect(shown.at(-1)).toBe('out\n');
});

it('names the line of the failed step and its last lines', () => {
  const { lines, output } = outputOf(TEXT);
  for (const part of OUTPUT) lines.write(part.replace('Step 4/9 : of its own\n', ''));
  expect(output.failureOf('it returned 3', lines.list())).toBe('Line 4: it returned 3\nout');
});

it('limits the length of the message', () => {
  const { lines, output } = outputOf('FROM a\nRUN b');
  lines.write('Step 1/3 : FROM a\nStep 2/3 : LABEL x\nStep 3/3 : RUN b\n');
  for (let line = 0; line < 100; line += 1) lines.write(`${line} ${'x'.repeat(300)}\n`);
  const message = output.failureOf(`The command ${'c'.repeat(9_000)} returned 3`, lines.list());
  expect(message).toMatch(/^Line 2: The command c+ … c+ returned 3\n/);
  expect(message.length).toBeLessThan(2_600);
  expect(message).toMatch(/\n99 x+$/);
});

it.each([
  [
    'dockerfile parse error line 3: ENV requires one',
    'Line 4: dockerfile parse error: ENV requires one',
  ],
  ['Dockerfile parse error on line 1: no', 'Line 2: Dockerfile parse error: no'],
  ['no line', 'no line'],
])('maps line numbers in the error %j to the renter’s Dockerfile', (words, message) => {
  const { output, lines } = outputOf('# a\nFROM a\n\nENV');
  lines.write('a is sha256:0\n');
  expect(output.failureOf(words, lines.list())).toBe(message);
});
