/** Variables in a Dockerfile's FROM lines, expanded as the builder does. Pure. */
import { DockerfileProblem } from './dockerfile-problem.ts';

const VARIABLE = /\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:[-+])([^${}\\]*))?\})/g;

/** `$A`, `${A}`, `${A:-word}` and `${A:+word}`; anything else with a dollar or a backslash is refused. */
export function expandVariables(text: string, known: ReadonlyMap<string, string>): string {
  if (/\\/.test(text) || text.replace(VARIABLE, '').includes('$')) {
    throw new DockerfileProblem(`Not a form of variables that is supported: ${text.slice(0, 100)}`);
  }
  return text.replace(
    VARIABLE,
    (_, plain?: string, braced?: string, operator?: string, word: string = '') => {
      const value = known.get(plain ?? braced ?? '') ?? '';
      if (operator === ':-') return value === '' ? word : value;
      if (operator === ':+') return value === '' ? '' : word;
      return value;
    },
  );
}
