/** `npm start`: runs the whole marketplace on this machine. */
import { rmSync } from 'node:fs';
import { userInfo } from 'node:os';
import { requireFreePorts } from '#shared/http/listen.ts';
import { requireNone } from '#shared/runtime/arguments.ts';
import { DeadlineError, systemClock, withDeadline } from '#shared/runtime/clock.ts';
import {
  type Environment,
  errorMessages,
  exitStatusOf,
  inspectConfig,
} from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { createLog } from '#shared/runtime/log.ts';
import { createProgress } from '#shared/runtime/progress.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { lockExclusively } from '#shared/runtime/sqlite.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { isTracingConfigured, startTracing } from '#shared/telemetry/tracing.ts';
import { CENTRAL_CONFIG } from '../central/config.ts';
import {
  centralOptionsFrom,
  databaseTarget,
  localAdapters,
  refuseFreshOn,
} from './central-settings.ts';
import { readyText } from './demo-file.ts';
import { requireEngine } from './engine-problem.ts';
import { type Home, homeAt, prepareHome } from './home.ts';
import { startMarketplace } from './marketplace.ts';
import { configuredListener } from './metrics-listeners.ts';
import { parseStartOptions, START_HELP, type StartOptions } from './options.ts';
import { resetHome } from './remove-pods.ts';

const STOPPED_BY_USER = 130;
const SAME_SIGNAL_MS = 1_000;
/**
 * Timeout of the shutdown: 30 s for pods, 12 s for agents, 2 s for spans, and a reserve. The next start removes what is
 * left.
 */
const STOPPED_WITHIN_MS = 60_000;
const STOPPING = 'Stopping.';
const STOPPING_WITH_PODS =
  'Stopping. Press Ctrl-C again to stop at once; the pods then keep running.';
const TOO_LONG = `shutdown took longer than ${STOPPED_WITHIN_MS / 1_000} s; the next start removes what is left`;

function print(text: string): void {
  process.stdout.write(text);
}

function complain(text: string): void {
  process.stderr.write(text);
}

const progress = createProgress(systemClock, process.stdout);

async function run(): Promise<void> {
  const { options, problems } = parseStartOptions(process.argv.slice(2));
  if (options.help) return print(START_HELP);
  if (options.version) return print(`${VERSION}\n`);
  const home = homeAt(options.home);
  // Validate before anything is deleted or started.
  await (options.simulate ? validateSimulated : validate)(options, { home, problems });
  prepareHome(home);
  const lock = takeLock(home);
  await requireFreePorts(listenersOf(options));
  const interruption = new AbortController();
  const { signal } = interruption;
  const starting = options.simulate
    ? startSimulated(options, home, signal)
    : start(options, home, signal);
  stopOnSignal(options.simulate ? STOPPING : STOPPING_WITH_PODS, async () => {
    interruption.abort(new Error('the start was interrupted'));
    const started = await starting.catch(() => null);
    await started?.stop();
    progress.end();
    lock.close();
  });
  const started = await starting.catch((error: unknown) => {
    // The stop prints what it does; an interruption is not an error.
    if (signal.aborted) return null;
    throw error;
  });
  if (started === null || signal.aborted) return;
  progress.end();
  print(started.readyText);
  await started.ended?.catch((error: unknown) => {
    fail(error);
    // The listener would keep the process alive.
    process.exit();
  });
}

type Found = { home: Home; problems: readonly string[] };

/** Rejects with all problems of options and variables, and without a Docker engine. */
async function validate(options: StartOptions, { home, problems }: Found): Promise<void> {
  for (const { message } of inspectConfig(CENTRAL_CONFIG, process.env).warnings)
    complain(`warning: ${message}\n`);
  requireNone([...problems, ...variableProblems(process.env, home, options)]);
  await requireEngine(process.env, { clock: systemClock, user: userInfo().username });
}

/** Loaded only with `--simulate`. */
const loadSimulation = () => import('./simulated-marketplace.ts');

/** A simulated marketplace reads no variables and needs no engine. */
async function validateSimulated(options: StartOptions, { problems }: Found): Promise<void> {
  const { scenarioOf } = await loadSimulation();
  requireNone([...problems, ...errorMessages(() => scenarioOf(options))]);
}

type Started = {
  /** Printed when everything responds. */
  readyText: string;
  /** Rejects with the error that ends the program. */
  ended?: Promise<void>;
  stop(): Promise<void>;
};

/** Returns the problems of all variables that `npm start` reads. */
function variableProblems(
  environment: Environment,
  home: Home,
  { host }: Pick<StartOptions, 'host'>,
): string[] {
  return errorMessages(
    () => databaseTarget(environment, home),
    () => centralOptionsFrom(environment),
    () => localAdapters(environment, host),
    () => configuredListener(environment),
    () => isTracingConfigured(environment),
  );
}

/** Resets the home if requested, and starts everything. */
async function start(options: StartOptions, home: Home, signal: AbortSignal): Promise<Started> {
  // Scripts wait for this file and must not find the file of the last run.
  rmSync(home.demoFile, { force: true });
  if (options.fresh) {
    await refuseFreshOn(databaseTarget(process.env, home));
    await resetHome(home, process.env, progress.step);
  }
  signal.throwIfAborted();
  const tracing = await startTracing('podwright', process.env, {
    clock: systemClock,
    log: createLog({ name: 'podwright', level: 'warn' }),
  });
  const marketplace = await startMarketplace({
    options,
    home,
    clock: systemClock,
    random: systemRandom,
    environment: process.env,
    progress,
    signal,
  }).catch(async (error: unknown) => {
    await tracing.close();
    throw error;
  });
  const stop = async () => {
    await marketplace.stop(options['keep-pods']);
    await tracing.close();
  };
  return { readyText: readyText(marketplace.demo, home, marketplace.simulated), stop };
}

async function startSimulated(
  options: StartOptions,
  home: Home,
  signal: AbortSignal,
): Promise<Started> {
  rmSync(home.demoFile, { force: true });
  const { startSimulatedMarketplace } = await loadSimulation();
  return startSimulatedMarketplace({ options, home, random: systemRandom, progress, signal });
}

/** Addresses that the services and agents listen on. */
function listenersOf(options: StartOptions) {
  const { host } = options;
  if (options.simulate) return [listenerAt(host, '--port', options.port)];
  const agentPorts = Array.from({ length: options.agents }, (_, n) => options['agent-port'] + n);
  const ports = [
    { option: '--port', port: options.port },
    { option: '--validator-port', port: options['validator-port'] },
    ...agentPorts.map((port) => ({ option: '--agent-port', port })),
  ];
  return ports.map(({ option, port }) => listenerAt(host, option, port));
}

const listenerAt = (host: string, option: string, port: number) => ({
  host,
  port,
  names: { host: '--host', port: option },
});

/**
 * Stops in order on the first signal, also during the start. Ctrl-C arrives twice, from the terminal and from npm, so a
 * repeated signal exits at once only if it arrives more than a second later.
 */
function stopOnSignal(text: string, stop: () => Promise<void>): void {
  let stoppingSinceMs: number | null = null;
  const onSignal = () => {
    if (stoppingSinceMs === null) {
      stoppingSinceMs = systemClock.monotonicMs();
      progress.step(text);
      withDeadline(systemClock, STOPPED_WITHIN_MS, stop())
        .catch((error: unknown) =>
          fail(error instanceof DeadlineError ? new Error(TOO_LONG) : error),
        )
        // A span exporter that still retries would keep the process alive.
        .finally(() => process.exit());
    } else if (systemClock.monotonicMs() - stoppingSinceMs > SAME_SIGNAL_MS) {
      process.exit(STOPPED_BY_USER);
    }
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
}

function takeLock(home: Home) {
  try {
    return lockExclusively(home.lock);
  } catch (cause) {
    const message = `a marketplace is running in ${home.root} already: stop it, or name another folder with --home`;
    throw new Error(message, { cause });
  }
}

function fail(error: unknown): void {
  progress.end();
  complain(`podwright: ${messageOf(error)}\n`);
  process.exitCode = exitStatusOf(error);
}

await run().catch(fail);
