/** A signed key set as it lies in a JSON file; whether to believe its signature is the reader's to say. */
import { readFileSync, statSync } from 'node:fs';
import { SignedKeySet } from './key-set.ts';

const MAX_BYTES = 256 * 1024;

/** Throws Error that says what is wrong with the file. */
export function readSignedKeySet(path: string): SignedKeySet {
  const file = statSync(path);
  // A pipe would keep the reader for ever.
  if (!file.isFile()) throw new Error('not a file');
  if (file.size > MAX_BYTES) throw new Error(`larger than ${MAX_BYTES} bytes`);
  const parsed = SignedKeySet.safeParse(JSON.parse(readFileSync(path, 'utf8')));
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(
    ({ path: at, message }) => `${at.join('.') || 'the whole'}: ${message}`,
  );
  throw new Error(problems.join('; '));
}
