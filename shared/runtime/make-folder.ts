/** Makes folders. */
import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { ConfigError } from './config.ts';
import { hasCode, messageOf } from './errors.ts';

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

/** The same for a folder that `variable` names and a process keeps its files in. Throws ConfigError where it could not. */
export function requireFolder(path: string, variable: string): void {
  try {
    makeFolder(path);
    if (!statSync(path).isDirectory()) throw new Error('it is no folder');
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (cause) {
    const message = `${variable} ${path} cannot be written: ${messageOf(cause)}`;
    throw new ConfigError(message, { cause });
  }
}
