/** Combines the reports of the agents' and the validator's doctors for a marketplace on one machine. Pure. */
import { warn } from '#shared/check/check.ts';
import { type Finding, findingOf } from '#shared/check/doctor.ts';

export type Reports = {
  /** True if the first agent has simulated GPUs. */
  simulated: boolean;
  /** Findings by agent name, in order. The first agent's findings include the checks of the machine. */
  agents: readonly (readonly [name: string, findings: readonly Finding[]])[];
  central: readonly Finding[];
  validator: readonly Finding[];
};

/** Checks that are reported for each agent. All others concern the machine and are the same for every agent. */
const PER_AGENT: ReadonlySet<string> = new Set([
  'doctor',
  'configuration',
  'executor-id',
  'trusted-keys',
  'policy',
  'enrolment',
  'agent-port',
  'pod-ports-ephemeral',
  'pod-ports-free',
  'home-disk',
  'state-folder',
  'store',
  'agent',
  'ssh-gateway',
]);
/**
 * Checks that are left out, because all processes share one machine with one clock, and nothing outside has to reach
 * it.
 */
const NOT_ON_ONE_MACHINE: ReadonlySet<string> = new Set([
  'reachability',
  'clock-sync',
  'clock-skew',
]);
/** Check that is left out with simulated GPUs: `npm start` uses them because it found no real ones. */
const OF_REAL_GPUS = 'nvidia-driver';
/**
 * Checks of the validator that this report omits: `npm start` has no metagraph file and signs no image. The other
 * omitted checks are already reported for the agents.
 */
const NOT_OF_VALIDATOR: ReadonlySet<string> = new Set([
  'metagraph',
  'registry',
  'clock-sync',
  'clock-skew',
  'home-disk',
  'state-folder',
]);
/** Checks of the central API that are already reported for the agents, or concern the clock of the machine. */
const NOT_OF_CENTRAL: ReadonlySet<string> = new Set(['clock-sync', 'clock-skew', 'home-disk']);
/** Processes of an agent, which `npm start` restarts. */
const CHILDREN: ReadonlySet<string> = new Set(['agent', 'ssh-gateway']);
/** Checks that need running processes. */
const NEEDS_PROCESSES: ReadonlySet<string> = new Set([
  'central',
  'central-hotkey',
  'gateway',
  'listener',
  ...CHILDREN,
]);

/**
 * Orders the findings: the machine's first, then `agent-1/…`, `central/…` and `validator/…`. `start` is the command
 * that starts the marketplace.
 */
export function marketFindings(
  { simulated, agents, central, validator }: Reports,
  start: string,
): Finding[] {
  const [, first = []] = agents[0] ?? [];
  const machine = first.filter(
    ({ id }) =>
      !PER_AGENT.has(id) && !NOT_ON_ONE_MACHINE.has(id) && !(simulated && id === OF_REAL_GPUS),
  );
  const runs = validator.some(({ id, status }) => NEEDS_PROCESSES.has(id) && status === 'ok');
  const applies = ({ id }: Finding) => runs || !NEEDS_PROCESSES.has(id);
  const ofAgents = agents.flatMap(([name, findings]) =>
    findings
      .filter((each) => PER_AGENT.has(each.id) && applies(each))
      .map((each) => named(name, withStartOptions(each))),
  );
  const ofCentral = central.filter((each) => !NOT_OF_CENTRAL.has(each.id) && applies(each));
  const ofValidator = validator.filter((each) => !NOT_OF_VALIDATOR.has(each.id) && applies(each));
  const stopped = warn('it does not run: checks that need its processes are left out', start);
  const marketplace = { id: 'marketplace', required: 'the marketplace runs' };
  return [
    ...(runs ? [] : [findingOf(marketplace, stopped)]),
    ...machine,
    ...ofAgents,
    ...ofCentral.map((each) => named('central', each)),
    ...ofValidator.map((each) => named('validator', each)),
  ];
}

function named(name: string, finding: Finding): Finding {
  return { ...finding, id: `${name}/${finding.id}` };
}

/** Rewrites remedies: a user of `npm start` sets options instead of variables and starts no process alone. */
function withStartOptions(finding: Finding): Finding {
  const { id, remedy } = finding;
  if (remedy === null) return finding;
  if (CHILDREN.has(id)) {
    return {
      ...finding,
      remedy: 'npm start restarts it; logs/ of the home has the reason why it ended',
    };
  }
  return {
    ...finding,
    remedy: remedy
      .replaceAll('AGENT_PORT_RANGE', '--pod-ports of npm start')
      .replaceAll('AGENT_PORT', '--agent-port of npm start'),
  };
}
