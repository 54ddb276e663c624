/** The short human-readable name of a node, derived from its id alone (contract 3.1). Pure. */
import { createHash } from 'node:crypto';

const ADJECTIVES = [
  'swift',
  'brave',
  'calm',
  'eager',
  'gentle',
  'cosmic',
  'golden',
  'lunar',
  'zesty',
  'noble',
] as const;
const NOUNS = [
  'hawk',
  'lion',
  'eagle',
  'fox',
  'wolf',
  'shark',
  'raven',
  'matrix',
  'comet',
  'orbit',
] as const;

/** Not unique: there are 25 600 of them. */
export function huidOf(id: string): string {
  const hash = createHash('md5').update(id.toLowerCase()).digest('hex');
  const adjective = ADJECTIVES[Number.parseInt(hash.slice(0, 4), 16) % ADJECTIVES.length];
  const noun = NOUNS[Number.parseInt(hash.slice(4, 8), 16) % NOUNS.length];
  return `${adjective}-${noun}-${hash.slice(-2)}`;
}
