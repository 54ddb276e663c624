/** Why a file that somebody named cannot be used, in words that name it once. */
import { hasCode, messageOf } from './errors.ts';

/** Of what reading `path` threw. */
export function fileProblem(path: string, error: unknown): string {
  if (hasCode(error, 'ENOENT')) return `there is no file ${path}`;
  if (hasCode(error, 'EACCES')) return `${path} may not be read by this user`;
  if (hasCode(error, 'EISDIR')) return `${path} is a folder`;
  return `${path}: ${messageOf(error)}`;
}
