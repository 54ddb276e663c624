import { expect, it } from 'vitest';
import {
  imageNameOf,
  isLocalRegistry,
  matchesImage,
  matchesPattern,
  matchesRegistry,
  registryHostOf,
} from './image-name.ts';

it.each([
  ['ubuntu', 'docker.io', 'docker.io/library/ubuntu', 'latest'],
  ['docker.io/ubuntu:24.04', 'docker.io', 'docker.io/library/ubuntu', '24.04'],
  ['index.docker.io/library/ubuntu', 'docker.io', 'docker.io/library/ubuntu', 'latest'],
  ['DOCKER.IO:443/team/app:1', 'docker.io', 'docker.io/team/app', '1'],
  ['team/app', 'docker.io', 'docker.io/team/app', 'latest'],
  ['GHCR.io/a/b:1', 'ghcr.io', 'ghcr.io/a/b', '1'],
  [
    'registry.example.org:5000/a',
    'registry.example.org:5000',
    'registry.example.org:5000/a',
    'latest',
  ],
])('normalizes the image name %s', (reference, registry, name, tag) => {
  expect(imageNameOf(reference)).toEqual({ registry, name, tag });
});

it.each([
  ['a*c', 'abc', true],
  ['a*c', 'ac', true],
  ['a*a', 'a', false],
  ['*', '', true],
  ['*b*', 'abc', true],
  ['a*b*c', 'acb', false],
  ['abc', 'abcd', false],
  ['a.c', 'abc', false],
])('pattern %s matches %s: %s', (pattern, text, matches) => {
  expect(matchesPattern(pattern, text)).toBe(matches);
});

it('matches a pattern with many wildcards in linear time', () => {
  const began = performance.now();
  expect(matchesPattern(`${'a*'.repeat(120)}b`, 'a'.repeat(255))).toBe(false);
  expect(performance.now() - began).toBeLessThan(50);
});

it('matches every port of a registry without a port, and every tag of an image without a tag', () => {
  const name = imageNameOf('Registry.Example.org:5000/team/app:1.2');
  expect(matchesRegistry('registry.example.org', name)).toBe(true);
  expect(matchesRegistry('*.example.org', name)).toBe(true);
  expect(matchesRegistry('registry.example.org:443', name)).toBe(false);
  expect(matchesImage('registry.example.org:5000/team/*', name)).toBe(true);
  expect(matchesImage('registry.example.org:5000/team/app:1.*', name)).toBe(true);
  expect(matchesImage('registry.example.org:5000/team/app:2.*', name)).toBe(false);
});

it.each([
  ['ubuntu:24.04', null],
  ['library/ubuntu', null],
  ['ghcr.io/a/b:1', 'ghcr.io'],
  ['registry.example.com:5000/a', 'registry.example.com'],
  ['localhost/a', 'localhost'],
  ['LOCALHOST/a', 'localhost'],
  ['localhost:5000/a', 'localhost'],
  ['169.254.169.254/x/y', '169.254.169.254'],
])('the registry host of %s is %s', (reference, host) => {
  expect(registryHostOf(reference)).toBe(host);
});

it.each([
  ['169.254.169.254', true],
  ['127.0.0.1', true],
  ['10.0.0.7', true],
  ['172.31.0.1', true],
  ['192.168.1.1', true],
  ['127.1', true],
  ['2130706433', true],
  ['0x7f000001', true],
  ['localhost', true],
  ['router', true],
  ['metadata.google.internal', true],
  ['8.8.8.8', false],
  ['172.32.0.1', false],
  ['docker.io', false],
  ['registry.example.com', false],
])('registry host %s is local: %s', (host, local) => {
  expect(isLocalRegistry(host)).toBe(local);
});
