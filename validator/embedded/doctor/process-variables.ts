/** Variables of the processes of a local marketplace, for its doctor. */
import { existsSync, readFileSync } from 'node:fs';
import { definedVariables, type Environment } from '#shared/runtime/config.ts';
import { type Home, type Variables, variablesIn } from '../home.ts';

/** Variables with which `npm start` runs the process; none if it was not started. */
export function read(home: Home, name: string): Variables {
  const path = home.variables(name);
  return existsSync(path) ? variablesIn(readFileSync(path, 'utf8')) : {};
}

/** Variables of the central API: those that `npm start` chooses, and those of its environment. */
export function centralVariables(home: Home, environment: Environment): Environment {
  const own = Object.entries(environment).filter(([name]) => name.startsWith('CENTRAL_'));
  return { PATH: environment['PATH'], ...Object.fromEntries(own), ...read(home, 'central') };
}

/** Environment of an agent's doctor. */
export function agentEnvironment(
  variables: Variables,
  { PATH = '/usr/bin:/bin', DOCKER_HOST, NODE_COMPILE_CACHE }: Environment,
): Record<string, string> {
  return { PATH, ...definedVariables({ DOCKER_HOST, NODE_COMPILE_CACHE }), ...variables };
}
