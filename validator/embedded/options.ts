/** Command line of `npm start` (design, Running it). */
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { ConfigError } from '#shared/config.ts';

export const START_HELP = `Runs the whole Podwright marketplace on this machine: central API, validator and agents on the real Docker engine.

  npm start -- [options]

  --home DIR             where everything is kept (default ./var)
  --host ADDRESS         address that the services listen on (default 127.0.0.1)
  --port N               central API (default 8000)
  --validator-port N     validator gateway (default 8090)
  --agents N             number of agents, 1-8 (default 2)
  --agent-port N         first agent; the others take the next ports (default 8080)
  --pod-ports N          first host port of pods; each agent gets 200 (default 20000)
  --keep-pods            leave pods running when this stops (default: remove them)
  --fresh                forget everything in DIR and remove its pods first
  --help

CENTRAL_DATABASE=postgres://user:password@host:port/database keeps the central API's data there
instead of in DIR.
`;

const Port = z.coerce.number().int().min(1).max(65_535);

const Schema = z.object({
  home: z.string().min(1).default('./var'),
  host: z.string().min(1).default('127.0.0.1'),
  port: Port.default(8000),
  'validator-port': Port.default(8090),
  agents: z.coerce.number().int().min(1).max(8).default(2),
  'agent-port': Port.default(8080),
  'pod-ports': z.coerce.number().int().min(1024).max(63_000).default(20_000),
  'keep-pods': z.boolean().default(false),
  fresh: z.boolean().default(false),
  help: z.boolean().default(false),
});

export type StartOptions = z.output<typeof Schema>;

/** Throws ConfigError naming the wrong option, its value and what is allowed. */
export function parseStartOptions(argv: readonly string[]): StartOptions {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  let values: Record<string, unknown>;
  try {
    ({ values } = parseArgs({
      args: [...argv],
      strict: true,
      allowPositionals: false,
      options: {
        home: text,
        host: text,
        port: text,
        'validator-port': text,
        agents: text,
        'agent-port': text,
        'pod-ports': text,
        'keep-pods': flag,
        fresh: flag,
        help: flag,
      },
    }));
  } catch (error) {
    throw new ConfigError(`${error instanceof Error ? error.message : error}\n\n${START_HELP}`);
  }
  const parsed = Schema.safeParse(values);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => {
    const name = String(issue.path[0]);
    return `--${name} ${JSON.stringify(values[name])}: ${issue.message}`;
  });
  throw new ConfigError(problems.join('\n'));
}
