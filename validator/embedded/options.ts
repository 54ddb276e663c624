/** Command line of `npm start`. */
import { z } from 'zod';
import { readArguments } from '#shared/runtime/arguments.ts';

export const START_HELP = `Runs the whole Podwright marketplace on this machine: central API, validator and agents on the real Docker engine.

  npm start -- [options]

  --home DIR             folder for all data (default ./var)
  --host ADDRESS         address that the services listen on (default 127.0.0.1)
  --port N               central API (default 8000)
  --validator-port N     validator gateway (default 8090)
  --agents N             number of agents, 1-8 (default 2)
  --agent-port N         first agent; the others take the next ports (default 8080)
  --pod-ports N          first host port of pods; each agent gets 200 (default 20000)
  --metrics-port N       first of ten ports on 127.0.0.1 for Prometheus; if one of them is in use, the next
                         ten are tried (default 8100)
  --keep-pods            leave pods running when npm start ends (default: remove them)
  --fresh                first remove the pods and all data of DIR
  --simulate             run a simulated marketplace instead, without Docker, whose data ends with the process: modelled
                         hosts, providers and renters behind the real API and console, with a clock that operators
                         advance, pause or speed up, and faults that they begin (/operator/clock in the console,
                         /api/_local/clock); equal options give equal runs as long as no request comes from outside
  --providers N          with --simulate: providers, each with one host, 1-1000 (default 20)
  --renters N            with --simulate: renters, 0-5000 (default 50)
  --seed N               with --simulate: seed of all random values, 0-4294967295 (default 1)
  --scenario FILE        with --simulate: supply, demand and faults
                         (default validator/simulate/scenarios/default.json)
  --help, --version      print this text or the version, and start nothing

CENTRAL_DATABASE=postgres://user:password@host:port/database stores the central API's data there
instead of in DIR.
`;

const MAX_PORT = 65_535;
/** Host ports per agent, starting at `--pod-ports`. */
export const POD_PORTS_PER_AGENT = 200;

const Port = between(1, MAX_PORT);

const Schema = z.object({
  home: z.string().min(1).default('./var'),
  host: z.string().min(1).default('127.0.0.1'),
  port: Port.default(8000),
  'validator-port': Port.default(8090),
  agents: between(1, 8).default(2),
  'agent-port': Port.default(8080),
  'pod-ports': between(1024, 63_000).default(20_000),
  'metrics-port': Port.default(8100),
  'keep-pods': z.boolean().default(false),
  fresh: z.boolean().default(false),
  simulate: z.boolean().default(false),
  providers: between(1, 1_000).default(20),
  renters: between(0, 5_000).default(50),
  seed: between(0, 2 ** 32 - 1).default(1),
  scenario: z.string().min(1).optional(),
  help: z.boolean().default(false),
  version: z.boolean().default(false),
});

export type StartOptions = z.output<typeof Schema>;

const TEXT = { type: 'string' } as const;
const FLAG = { type: 'boolean' } as const;
const OPTIONS = {
  home: TEXT,
  host: TEXT,
  port: TEXT,
  'validator-port': TEXT,
  agents: TEXT,
  'agent-port': TEXT,
  'pod-ports': TEXT,
  'metrics-port': TEXT,
  'keep-pods': FLAG,
  fresh: FLAG,
  simulate: FLAG,
  providers: TEXT,
  renters: TEXT,
  seed: TEXT,
  scenario: TEXT,
  help: FLAG,
  version: FLAG,
} as const;

/** Options of a simulated marketplace, and options that only a marketplace with agents has. */
const SIMULATED: readonly string[] = ['providers', 'renters', 'seed', 'scenario'];
const WITH_AGENTS: readonly string[] = [
  'validator-port',
  'agents',
  'agent-port',
  'pod-ports',
  'metrics-port',
  'keep-pods',
  'fresh',
];

/** `options`: the defaults replace values with a problem. `problems`: one line for each, with the remedy. */
export type ReadOptions = { options: StartOptions; problems: readonly string[] };

export function parseStartOptions(argv: readonly string[]): ReadOptions {
  const { values, problems } = readArguments(argv, OPTIONS, 0);
  const wrong = Schema.safeParse(values).error?.issues ?? [];
  const refused = new Set(wrong.map(({ path }) => String(path[0])));
  const right = Object.entries(values).filter(([name]) => !refused.has(name));
  const options = Schema.parse(Object.fromEntries(right));
  const ofValues = wrong.map(({ path: [name = ''], message }) => {
    const value = Object.entries(values).find(([key]) => key === name)?.[1];
    return `--${String(name)} ${JSON.stringify(value)}: ${message}`;
  });
  const ofPorts = options.simulate ? [] : portProblems(options, refused);
  const ofMode = modeProblems(Object.keys(values), options);
  return { options, problems: [...problems, ...ofValues, ...ofMode, ...ofPorts] };
}

/** Returns a problem for each option that has no effect. */
function modeProblems(
  names: readonly string[],
  { simulate }: Pick<StartOptions, 'simulate'>,
): string[] {
  return names.flatMap((name) => {
    if (!simulate && SIMULATED.includes(name)) return [`--${name} needs --simulate`];
    if (!simulate || !WITH_AGENTS.includes(name)) return [];
    return [`--${name} has no effect with --simulate: remove it`];
  });
}

function between(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z.coerce.number(message).int(message).min(min, message).max(max, message);
}

/** Returns a problem for each two options that use the same port, and for ports that do not exist. */
function portProblems(options: StartOptions, refused: ReadonlySet<string>): string[] {
  const used = portsIn(options).filter(({ option }) => !refused.has(option.slice('--'.length)));
  return used.flatMap((one, index) => {
    if (one.last > MAX_PORT) {
      const lower = `choose a port that is at least ${one.last - MAX_PORT} lower`;
      return [
        `${one.option} reaches port ${one.last}, but the highest port is ${MAX_PORT}: ${lower}`,
      ];
    }
    const others = used.slice(index + 1).filter(({ first, last }) => overlaps(one, first, last));
    return others.map((other) => {
      const at = Math.max(one.first, other.first);
      return `${one.option} and ${other.option} both use port ${at}: change one`;
    });
  });
}

/** Returns the ports that options assign to services and pods. */
function portsIn(options: StartOptions) {
  const { port, 'validator-port': gateway, 'agent-port': agent, 'pod-ports': pods } = options;
  return [
    { option: '--port', first: port, last: port },
    { option: '--validator-port', first: gateway, last: gateway },
    { option: '--agent-port', first: agent, last: agent + options.agents - 1 },
    {
      option: '--pod-ports',
      first: pods,
      last: pods + options.agents * POD_PORTS_PER_AGENT - 1,
    },
  ];
}

/** Ports for metrics: central API, validator, and at most eight agents. */
const METRICS_PORTS = 10;

/**
 * Returns the first port of each block of ten ports that metrics may use, in order of preference: from
 * `--metrics-port` upwards, without blocks that contain ports of other options.
 */
export function metricsBlocks(options: StartOptions): number[] {
  const first = options['metrics-port'];
  const count = Math.floor((MAX_PORT + 1 - first) / METRICS_PORTS);
  return Array.from({ length: count }, (_, index) => first + index * METRICS_PORTS).filter(
    (block) => !portsIn(options).some((used) => overlaps(used, block, block + METRICS_PORTS - 1)),
  );
}

function overlaps(one: { first: number; last: number }, first: number, last: number): boolean {
  return one.first <= last && first <= one.last;
}
