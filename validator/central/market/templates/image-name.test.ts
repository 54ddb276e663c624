import { expect, it } from 'vitest';
import { imageReference, parseImageName } from './image-name.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;

it.each([
  ['ubuntu', '24.04', '', 'ubuntu', '24.04', ''],
  ['ubuntu', '', '', 'ubuntu', 'latest', ''],
  ['ubuntu:22.04', '', '', 'ubuntu', '22.04', ''],
  ['host:5000/team/app', '1', '', 'host:5000/team/app', '1', ''],
  ['host', '5000/team/app', '', 'host:5000/team/app', 'latest', ''],
  ['host:5000/app:1', '', '', 'host:5000/app', '1', ''],
  ['ubuntu', '24.04', DIGEST, 'ubuntu', '24.04', DIGEST],
  ['ubuntu', '', DIGEST, 'ubuntu', '', DIGEST],
  [`ubuntu@${DIGEST}`, '', '', 'ubuntu', '', DIGEST],
  ['ubuntu@sha256', 'a'.repeat(64), '', 'ubuntu', '', DIGEST],
  [`ubuntu:24.04@${DIGEST}`, '', DIGEST, 'ubuntu', '24.04', DIGEST],
  ['podwright.local/base', '1', '', 'podwright.local/base', '1', ''],
])('%s + %s + %s', (image, tag, digest, expectedImage, expectedTag, expectedDigest) => {
  const parsed = { image: expectedImage, tag: expectedTag, digest: expectedDigest };
  expect(parseImageName(image, tag, digest)).toEqual(parsed);
  expect(parseImageName(expectedImage, expectedTag, expectedDigest)).toEqual(parsed);
});

it.each([
  ['', '', ''],
  ['Ubuntu', 'x', ''],
  ['ubuntu:22.04', '24.04', ''],
  ['ubuntu', 'a b', ''],
  ['ubuntu', '-x', ''],
  ['ubuntu; rm -rf /', '', ''],
  ['ubuntu\n', '', ''],
  ['../etc', '', ''],
  ['--privileged', '', ''],
  ['ubuntu', '', 'sha256:abc'],
  [`ubuntu@${DIGEST}@${DIGEST}`, '', ''],
  [`ubuntu@${DIGEST}`, '', `sha256:${'b'.repeat(64)}`],
  ['http://host/app', '', ''],
])('%j + %j + %j is malformed', (image, tag, digest) => {
  expect(parseImageName(image, tag, digest)).toBeNull();
});

it('writes what an agent takes', () => {
  expect(imageReference({ image: 'ubuntu', tag: '24.04' })).toBe('ubuntu:24.04');
  expect(imageReference({ image: 'ubuntu', tag: '' })).toBe('ubuntu');
});
