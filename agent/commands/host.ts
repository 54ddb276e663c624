/** The command `host`: runs the agent and its SSH gateway as supervised processes, on a host without our systemd units. */
import { join } from 'node:path';
import { readEnrolment } from '#shared/api/agent/identity.ts';
import { requireFreePorts } from '#shared/http/listen.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import {
  ConfigError,
  definedVariables,
  type Environment,
  errorMessages,
  exitStatusOf,
} from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { createLog } from '#shared/runtime/log.ts';
import { agentArguments, gatewayArguments, stopOnSignal } from '#shared/runtime/node-process.ts';
import {
  type ChildOutput,
  type SupervisedChild,
  superviseChild,
} from '#shared/runtime/supervised-child.ts';
import { type AgentConfig, dockerSocketOf, readConfig } from '../config.ts';
import { readWholeConfig } from '../config-files.ts';
import { readConfig as readGatewayConfig } from '../ssh-gateway/config.ts';

const HOST_HELP = `Usage: npm run host

Runs the agent and its SSH gateway until Ctrl-C, and starts each again if it ends. Pods keep running after Ctrl-C.
Each line of output begins with the name of the process: agent, ssh or host. It reads the variables of both (AGENT_*
and SSH_*); SSH_SNAPSHOT and SSH_DOCKER_SOCKET follow the agent's variables unless they are set. On a host with
systemd, install the services instead: sh systemd/install.sh --component agent
`;

const START_POLL_MS = 100;
/** Width of the longest process name. */
const NAME_CHARS = 5;
/** Maximum length of a line; a longer line is printed in parts. */
const MAX_LINE_CHARS = 1_048_576;

/** Resolves after a signal. Rejects, with both processes stopped, if the configuration is invalid or one does not start. */
export async function runHost(args: readonly string[], environment: Environment): Promise<void> {
  if (args.length > 0) {
    const isHelp = args.length === 1 && args[0] === '--help';
    (isHelp ? process.stdout : process.stderr).write(HOST_HELP);
    process.exitCode = isHelp ? 0 : 2;
    return;
  }
  const { config, variables } = hostVariables(environment);
  await requireFreePorts(listenersOf(config));
  const log = createLog({ name: 'podwright-host', level: 'info' }, linesOf('host'));
  const supervise = (name: string, nodeArguments: readonly string[]) =>
    superviseChild({
      name,
      arguments: nodeArguments,
      environment: variables,
      output: linesOf(name),
      clock: systemClock,
      log,
      onReady: (pid) => {
        log.info({ child: name, pid }, 'serving');
        if (name === 'agent') sayOnHost(enrolmentText(config));
      },
      onEnd: (how) => log.error({ child: name }, `the process ended: ${how}`),
    });
  sayOnHost('starting the agent and the SSH gateway …');
  const children = [supervise('agent', agentArguments()), supervise('ssh', gatewayArguments())];
  let isStopping = false;
  stopOnSignal(async () => {
    isStopping = true;
    log.info('stopping; pods keep running');
    await stopAll(children);
  }, fail);
  let failure = startFailureOf(children);
  while (failure === null && !isStopping) {
    const isServing = children.every((child) => child.hasServed());
    const ended = Promise.race(children.map((child) => child.ended));
    await (isServing ? ended : systemClock.sleep(START_POLL_MS));
    failure = startFailureOf(children);
  }
  if (isStopping) return;
  await stopAll(children);
  throw failure;
}

/** Prints for a person. The log goes to the standard output. */
function sayOnHost(text: string): void {
  process.stderr.write(`${'host'.padEnd(NAME_CHARS)} | ${text}\n`);
}

function enrolmentText({ AGENT_HOME: home, AGENT_EXECUTOR_ID: id }: AgentConfig): string {
  const enrolment = readEnrolment(home);
  return enrolment?.executor_id === id
    ? `the agent serves, enrolled by ${enrolment.hotkey}; next: npm run provider -- list ${id}`
    : 'the agent serves, not enrolled; next: npm run --silent agent -- enrol request';
}

/** Returns why one of the children does not start; null while they serve or may still start. */
function startFailureOf(children: readonly SupervisedChild[]): Error | null {
  return children.map((child) => child.startFailure()).find((found) => found !== null) ?? null;
}

/** Throws ConfigError that names the problems of both processes. */
function hostVariables(environment: Environment) {
  const problems = errorMessages(
    () => readWholeConfig(environment),
    () => readGatewayConfig(environment),
  );
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  const config = readConfig(environment);
  const variables: Environment = {
    SSH_SNAPSHOT: join(config.AGENT_HOME, 'ssh', 'gateway.json'),
    SSH_DOCKER_SOCKET: dockerSocketOf(config, environment['DOCKER_HOST']),
    ...environment,
    AGENT_EXIT_WITH_PARENT: 'true',
    SSH_EXIT_WITH_PARENT: 'true',
    // Only a service that systemd started may send its notifications.
    NOTIFY_SOCKET: undefined,
    WATCHDOG_USEC: undefined,
    WATCHDOG_PID: undefined,
  };
  return { config, variables: definedVariables(variables) };
}

/** Addresses that the agent listens on; the gateway listens on the ports of pods only. */
function listenersOf({
  AGENT_HOST: host,
  AGENT_PORT: port,
  AGENT_METRICS_LISTEN: metrics,
}: AgentConfig) {
  const main = { host, port, names: { host: 'AGENT_HOST', port: 'AGENT_PORT' } };
  const name = 'AGENT_METRICS_LISTEN';
  return metrics === undefined ? [main] : [main, { ...metrics, names: { host: name, port: name } }];
}

/** Output whose lines begin with the name of the process. */
function linesOf(name: string): ChildOutput & { write(chunk: Uint8Array | string): void } {
  const prefix = `${name.padEnd(NAME_CHARS)} | `;
  const decoder = new TextDecoder();
  let incomplete = '';
  return {
    place: `its messages begin with "${name} |"`,
    write(chunk) {
      const text = typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
      const lines = (incomplete + text).split('\n');
      const rest = lines.pop() ?? '';
      incomplete = rest.length > MAX_LINE_CHARS ? '' : rest;
      if (incomplete !== rest) lines.push(rest);
      for (const line of lines) process.stdout.write(`${prefix}${line}\n`);
    },
  };
}

async function stopAll(children: readonly SupervisedChild[]): Promise<void> {
  await Promise.all(children.map((child) => child.stop()));
}

function fail(error: unknown): void {
  process.stderr.write(`podwright-host: ${messageOf(error)}\n`);
  process.exitCode = exitStatusOf(error);
}
