import { expect, it } from 'vitest';
import { z } from 'zod';
import { ConfigError, parseConfig } from './config.ts';

const schema = z.object({
  AGENT_PORT: z.coerce.number().int().default(8080),
  AGENT_EXECUTOR_ID: z.uuid(),
});
const ID = '3f9f41a6-0001-4000-8000-000000000001';
const parse = (environment: Record<string, string | undefined>) =>
  parseConfig(schema, environment, 'AGENT_');

it('reads its variables and ignores those of others', () => {
  const environment = { AGENT_EXECUTOR_ID: ID, AGENT_PORT: '9000', PATH: '/bin' };
  expect(parse(environment)).toEqual({ AGENT_PORT: 9000, AGENT_EXECUTOR_ID: ID });
});

it('counts an empty value as unset', () => {
  expect(parse({ AGENT_EXECUTOR_ID: ID, AGENT_PORT: '' }).AGENT_PORT).toBe(8080);
});

it('names all problems at once', () => {
  const refused = () => parse({ AGENT_PORT: 'x', AGENT_PROT: '1' });
  expect(refused).toThrow(ConfigError);
  expect(refused).toThrow(/AGENT_PROT: unknown variable; known ones are AGENT_EXECUTOR_ID/);
  expect(refused).toThrow(/AGENT_PORT \("x"\)/);
  expect(refused).toThrow(/AGENT_EXECUTOR_ID \(not set\)/);
});
