/** What a renter may not ask of the places that a template names in its containers. Pure. */
import { OWN_SSHD, reservedVariable } from '#shared/agent-api/reserved-variables.ts';
import { ApiError } from '#shared/errors.ts';

/** The kernel's folders, and the one in which every pod finds what the agent mounts. */
const SYSTEM_FOLDERS = ['proc', 'sys', 'dev', '.podwright'];
/** Of a path in a message. */
const SHOWN_CHARS = 100;

/**
 * Looks at what a request gives, not at what is stored. Throws `template_invalid` naming the first path or
 * variable that no pod can have (contract 8).
 */
export function checkTemplatePlaces(given: {
  volumes?: readonly string[] | undefined;
  environment?: Readonly<Record<string, string>> | undefined;
}): void {
  const { volumes = [], environment = {} } = given;
  const reserved = reservedVariable(environment);
  if (reserved !== null) {
    throw new ApiError('template_invalid', `environment: ${reserved} is set by the marketplace`, {
      hint: `Names that begin with PODWRIGHT_ are reserved, but for ${OWN_SSHD}.`,
    });
  }
  if (!['', '0', '1', undefined].includes(environment[OWN_SSHD])) {
    throw new ApiError('template_invalid', `environment: ${OWN_SSHD} is neither 0 nor 1`);
  }
  volumes.forEach((path, index) => {
    const problem = problemOf(path) ?? clashOf(path, volumes.slice(0, index));
    if (problem !== null) {
      throw new ApiError('template_invalid', `volumes: ${shown(path)} ${problem}`, {
        hint: 'Name separate folders of the container, such as /workspace.',
      });
    }
  });
}

function problemOf(path: string): string | null {
  if (!path.startsWith('/')) return 'is not an absolute path';
  if (/[\p{Cc}:]/u.test(path)) return 'holds a control character or a colon';
  const folders = foldersOf(path);
  const [first] = folders;
  if (first === undefined) return 'is the whole file system';
  if (/\/\//.test(path) || folders.some((name) => name === '.' || name === '..')) {
    return 'has empty, . or .. steps';
  }
  return SYSTEM_FOLDERS.includes(first) ? 'lies in a folder of the system' : null;
}

function clashOf(path: string, others: readonly string[]): string | null {
  const other = others.find((each) => isWithin(path, each) || isWithin(each, path));
  if (other === undefined) return null;
  const same = foldersOf(path).length === foldersOf(other).length;
  return same ? 'is named twice' : `and ${shown(other)} lie in each other`;
}

function isWithin(path: string, folder: string): boolean {
  const steps = foldersOf(path);
  return foldersOf(folder).every((name, index) => steps[index] === name);
}

/** Without the empty step that a slash at the end makes. */
function foldersOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '');
}

function shown(path: string): string {
  return JSON.stringify(path.slice(0, SHOWN_CHARS));
}
