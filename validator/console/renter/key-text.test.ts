import { expect, it } from 'vitest';
import { shortKey } from './key-text.ts';

it.each([
  ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJJ me@here', 'ssh-ed25519 …1NTE5AAAAIJJ me@here'],
  ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJJ', 'ssh-ed25519 …1NTE5AAAAIJJ'],
  ['ssh-rsa  AAAA  two words\n', 'ssh-rsa …AAAA two words'],
])('shortens %j', (text, expected) => expect(shortKey(text)).toBe(expected));
