import { expect, it } from 'vitest';
import { fail, type Outcome, ok, unknown, warn } from '#shared/check/check.ts';
import { findingOf } from '#shared/check/doctor.ts';
import { marketFindings } from './market-report.ts';

const START = 'npm start -- --home here';
const finding = (id: string, outcome: Outcome) => findingOf({ id, required: 'required' }, outcome);
const ofAgent = (port: number) => [
  finding('executor-id', ok(`of ${port}`)),
  finding('docker', ok('answers')),
  finding(
    'nvidia-driver',
    warn('AGENT_GPU=simulated: nothing computes here', 'set AGENT_GPU=auto'),
  ),
  finding('agent-port', warn(`something listens at ${port}`, 'stop it or set AGENT_PORT')),
  finding('agent', warn('it does not run', 'npm run agent')),
  finding('pod-ports-ephemeral', warn('overlap', 'set AGENT_PORT_RANGE below 32768')),
  finding('reachability', warn('AGENT_HOST=127.0.0.1', 'set AGENT_HOST=0.0.0.0')),
  finding('clock-skew', unknown('no time source was queried')),
];
const agents = [
  ['agent-1', ofAgent(8080)],
  ['agent-2', ofAgent(8081)],
] as const;
const VALIDATOR = [
  finding('key', ok('can sign')),
  finding('metagraph', warn('none is named: no weights are computed', 'set VALIDATOR_METAGRAPH')),
  finding('central', ok('accepts our signature')),
  finding('gateway', ok('answers')),
];
const CENTRAL = [finding('database', ok('40 tables')), finding('clock-sync', ok('yes'))];
const idsOf = (findings: readonly { id: string }[]) => findings.map(({ id }) => id);

it('reports the host once and each process by its name, and leaves out checks that do not apply', () => {
  const found = marketFindings(
    { simulated: true, agents, central: CENTRAL, validator: VALIDATOR },
    START,
  );
  const own = ['executor-id', 'agent-port', 'agent', 'pod-ports-ephemeral'];
  expect(idsOf(found)).toEqual([
    'docker',
    ...own.map((id) => `agent-1/${id}`),
    ...own.map((id) => `agent-2/${id}`),
    'central/database',
    ...['validator/key', 'validator/central', 'validator/gateway'],
  ]);
  // Remedies name options of npm start.
  expect(found.map(({ remedy }) => remedy).filter((remedy) => remedy !== null)).toEqual(
    [1, 2].flatMap(() => [
      'stop it or set --agent-port of npm start',
      'npm start restarts it; logs/ of the home has the reason why it ended',
      'set --pod-ports of npm start below 32768',
    ]),
  );
});

it('checks real GPUs, and reports a stopped marketplace once instead of each silent process', () => {
  const silent = [
    finding('key', ok('can sign')),
    finding('central', fail('ECONNREFUSED', 'curl')),
    finding('central-hotkey', unknown('ECONNREFUSED')),
    finding('gateway', warn('no gateway of this validator answers', 'npm run validator')),
  ];
  const found = marketFindings({ simulated: false, agents, central: [], validator: silent }, START);
  expect(found[0]).toMatchObject({ id: 'marketplace', status: 'warn', remedy: START });
  expect(idsOf(found)).toContain('nvidia-driver');
  expect(idsOf(found)).not.toContain('agent-1/agent');
  expect(idsOf(found).filter((id) => id.startsWith('validator/'))).toEqual(['validator/key']);
  // One silent process beside running ones is a failure.
  const half = silent.map((each) =>
    each.id === 'gateway' ? finding('gateway', ok('answers')) : each,
  );
  const failing = marketFindings({ simulated: false, agents, central: [], validator: half }, START);
  expect(failing).toContainEqual(
    expect.objectContaining({ id: 'validator/central', status: 'fail' }),
  );
});
