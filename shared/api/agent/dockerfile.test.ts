import { expect, it } from 'vitest';
import { parseDockerfile } from './dockerfile.ts';

function imagesOf(text: string): string[] | string {
  const parsed = parseDockerfile(text);
  if ('problem' in parsed) return parsed.problem;
  return parsed.images.map(({ reference, digest }) =>
    digest === undefined ? reference : `${reference}@${digest}`,
  );
}

const DIGEST = `sha256:${'a'.repeat(64)}`;

it.each([
  ['FROM ubuntu:24.04\nRUN true', ['ubuntu:24.04']],
  [
    '# a comment\n\nfrom  ubuntu  as  base\nFROM base\nFROM ghcr.io/a/b:1 AS b',
    ['ubuntu', 'ghcr.io/a/b:1'],
  ],
  [`FROM r.example:5000/a@${DIGEST}`, [`r.example:5000/a@${DIGEST}`]],
  [`ARG A=ubuntu\nARG T="24.04"\nFROM \${A}:$T`, ['ubuntu:24.04']],
  [`ARG A\nFROM \${A:-debian}\${A:+no}`, ['debian']],
  ['ARG R=r.example\nARG I=$R/x\nFROM $I', ['r.example/x']],
  ['FROM \\\n  ubuntu:1 \\\n# in between\n  AS x\nRUN true', ['ubuntu:1']],
  ['FROM scratch\nCOPY --from=0 /a /b\nCOPY --chown=1 --from=alpine:3 /a /b', ['alpine:3']],
  ['FROM a AS One\nFROM b\nCOPY --from=one /a /b', ['a', 'b']],
  ['FROM a AS b\nCOPY --from=b /a /b', ['a', 'b']],
  ['# syntax=docker/dockerfile:1\n# escape=\\\nFROM a', ['a']],
  ['FROM a\r\nRUN true\r\n', ['a']],
  ['FROM scratch AS none\nFROM scratch-like\nRUN cat <<< x && echo $((1<<N))', ['scratch-like']],
  ['FROM scratch\nCOPY --from=busybox /bin /bin\nRUN true', ['busybox']],
])('finds every image of %j', (text, images) => {
  expect(imagesOf(text)).toEqual(images);
});

it.each([
  ['RUN true', /before the first FROM/],
  ['', /no FROM/],
  ['# escape=`\nFROM a', /escape character/],
  ['FROM a\nADD http://169.254.169.254/x /x', /ADD is refused/],
  ['FROM a\nADD x /x', /ADD is refused/],
  ['FROM a\nONBUILD RUN true', /ONBUILD is not supported/],
  ['FROM a\nCOPY --fr"om"=10.0.0.1/x /a /b', /Not a flag of COPY/],
  ['FROM a\nCOPY --fr\\om=10.0.0.1/x /a /b', /Not a flag of COPY/],
  ['FROM a\nCOPY \u0085--from=10.0.0.1/x /a /b', /unusual spaces/],
  ['FROM SCRATCH', /Not an image reference/],
  ['FROM --platform=linux/arm64 a', /takes no flags/],
  [`ARG A=10.0.0.1\nFROM \${A#x}/b`, /Unsupported form of variables/],
  ['ARG A="10.0.0.1/x y"\nFROM $A', /without spaces/],
  ['FROM $(x)', /Unsupported form of variables/],
  ['FROM a b c d', /Not FROM/],
  ['FROM http://10.0.0.1/x', /Not an image reference/],
  ['FROM a\nCOPY --from=$X /a /b', /Not an image reference/],
  ['FROM a\nCOPY --from=a --from=10.0.0.1/x /a /b', /more than one --from/],
  ['FROM a\nRUN <<EOF\nADD x\nEOF', /ADD is refused/],
  ['FROM a\nRUN x \\', /backslash/],
  ['FROM a\nLABEL io.podwright.pod=x', /LABEL io.podwright/],
  ['FROM a\nLABEL io."podw"right.pod=x', /LABEL io.podwright/],
  [`FROM a\nENV P=io.podwright\nLABEL \${P}.pod=x`, /LABEL with variables/],
  ['FROM a\nFORM b', /^Line 2: Not an instruction: FORM b$/],
  ['# c\n\nFROM a\nRUN x \\\n  y\nCOPY . /x', /^Line 6: COPY without --from=.* no build context/],
  ['FROM a\nCOPY --chown=1 a b /x/', /^Line 2: COPY without --from/],
  ['FROM a\nCOPY <<EOF /x\nhello\nEOF', /^Line 3: Not an instruction: hello \(here-documents/],
  ['FROM a\nCOPY <<EOF /x', /^Line 2: Here-documents need BuildKit/],
  ['FROM a\nRUN <<EOF\necho x\nEOF', /^Line 3: Not an instruction: echo x \(here-documents/],
  ['FROM scratch', /^Line 1: scratch is empty: start from an image such as/],
  ['FROM a\nFROM scratch AS x\nCMD ["y"]', /^Line 2: scratch is empty/],
  ['FROM scratch\nRUN true', /^Line 2: scratch is empty/],
  [`FROM a\n${'FROM a\n'.repeat(40)}`, /More than 32/],
])('rejects %j', (text, problem) => {
  expect(imagesOf(text)).toMatch(problem);
});

it('returns each instruction on one line, with its image separate', () => {
  const text = 'ARG B=ubuntu\nFROM $B AS x\nRUN a && \\\n  # why\n  b\nCOPY --from=alpine /etc /e';
  const parsed = parseDockerfile(text);
  expect('instructions' in parsed && parsed.instructions).toMatchObject([
    { name: 'ARG', rest: 'B=ubuntu' },
    { name: 'FROM', rest: 'ubuntu AS x', around: { before: 'FROM ', after: ' AS x' } },
    { name: 'RUN', rest: 'a &&   b' },
    { name: 'COPY', around: { before: 'COPY --from=', after: ' /etc /e' } },
  ]);
});
