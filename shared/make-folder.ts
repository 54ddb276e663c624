/** Makes folders. */
import { existsSync, mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { hasCode } from './errors.ts';

/**
 * The folder at `path` and those above it that are missing, mode 0700. Throws what the system says of the first that cannot be
 * made. Node's own `recursive` never comes back where a folder that exists takes no other, as /proc.
 */
export function makeFolder(path: string): void {
  const missing: string[] = [];
  for (let at = resolve(path); !existsSync(at); at = dirname(at)) missing.unshift(at);
  for (const each of missing) {
    try {
      mkdirSync(each, { mode: 0o700 });
    } catch (error) {
      // Another process was quicker.
      if (!hasCode(error, 'EEXIST')) throw error;
    }
  }
}
