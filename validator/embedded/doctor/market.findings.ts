/** What the doctors of agents and validator found, as it matters to a marketplace on one machine. Pure. */
import { type Finding, warn } from '#shared/check/finding.ts';

export type Reports = {
  /** The first agent's GPUs are. */
  simulated: boolean;
  /** By their names, in order; the first has looked at the machine, too. */
  agents: readonly (readonly [name: string, findings: readonly Finding[]])[];
  validator: readonly Finding[];
};

/** What each agent has of its own. All else is the machine's, and the same for all. */
const OF_AN_AGENT: ReadonlySet<string> = new Set([
  ...['configuration', 'executor-id', 'trusted-keys', 'policy', 'enrolment'],
  ...['agent-port', 'pod-ports-ephemeral', 'pod-ports-free', 'home-disk', 'state-folder'],
  ...['agent', 'ssh-gateway'],
]);
/** One machine is reached from nowhere else, and has one clock. */
const NOT_HERE: ReadonlySet<string> = new Set(['reachability', 'clock-sync', 'clock-skew']);
/** Simulated ones are so because `npm start` found none. */
const OF_REAL_GPUS = 'nvidia-driver';
/** Who is registered is made up, and no image is signed for. */
const NOT_OF_OUR_VALIDATOR: ReadonlySet<string> = new Set([
  ...['metagraph', 'registry', 'clock-sync', 'clock-skew', 'home-disk', 'state-folder'],
]);
/** Processes of an agent, which `npm start` starts again when they end. */
const CHILDREN: ReadonlySet<string> = new Set(['agent', 'ssh-gateway']);
/** What only a marketplace that runs can be asked. */
const OF_WHAT_RUNS: ReadonlySet<string> = new Set([
  ...['central', 'central-hotkey', 'gateway'],
  ...CHILDREN,
]);

/** The machine first, then what is somebody's own, by the names `agent-1/…` and `validator/…`. `start`: the command that starts it. */
export function marketFindings(
  { simulated, agents, validator }: Reports,
  start: string,
): Finding[] {
  const [, first = []] = agents[0] ?? [];
  const machine = first.filter(
    ({ id }) => !OF_AN_AGENT.has(id) && !NOT_HERE.has(id) && !(simulated && id === OF_REAL_GPUS),
  );
  const runs = validator.some(({ id, status }) => OF_WHAT_RUNS.has(id) && status === 'ok');
  const isAsked = ({ id }: Finding) => runs || !OF_WHAT_RUNS.has(id);
  const ofAgents = agents.flatMap(([name, findings]) =>
    findings
      .filter((each) => OF_AN_AGENT.has(each.id) && isAsked(each))
      .map((each) => named(name, ofStart(each))),
  );
  const ofValidator = validator.filter(
    (each) => !NOT_OF_OUR_VALIDATOR.has(each.id) && isAsked(each),
  );
  const stopped = warn('marketplace', 'it does not run: what it would answer was not asked', start);
  return [
    ...(runs ? [] : [stopped]),
    ...machine,
    ...ofAgents,
    ...ofValidator.map((each) => named('validator', each)),
  ];
}

function named(name: string, finding: Finding): Finding {
  return { ...finding, id: `${name}/${finding.id}` };
}

/** Here the operator sets options, no variables, and starts no process alone. */
function ofStart(finding: Finding): Finding {
  const { id, remedy } = finding;
  if (remedy === null) return finding;
  if (CHILDREN.has(id)) {
    return {
      ...finding,
      remedy: 'npm start starts it again; why it ended is in logs/ of the home',
    };
  }
  const said = remedy
    .replaceAll('AGENT_PORT_RANGE', '--pod-ports of npm start')
    .replaceAll('AGENT_PORT', '--agent-port of npm start');
  return { ...finding, remedy: said };
}
