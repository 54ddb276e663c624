import { expect, it } from 'vitest';
import { fail, ok, unknown, warn } from '#shared/check/finding.ts';
import { marketFindings } from './market.findings.ts';

const START = 'npm start -- --home here';
const ofAgent = (port: number) => [
  ok('executor-id', `of ${port}`),
  ok('docker', 'answers'),
  warn('nvidia-driver', 'AGENT_GPU=simulated: nothing computes here', 'set AGENT_GPU=auto'),
  warn('agent-port', `something listens at ${port}`, 'stop it or set AGENT_PORT'),
  warn('agent', 'it does not run', 'npm run agent'),
  warn('pod-ports-ephemeral', 'overlap', 'set AGENT_PORT_RANGE below 32768'),
  warn('reachability', 'AGENT_HOST=127.0.0.1', 'set AGENT_HOST=0.0.0.0'),
  unknown('clock-skew', 'nobody was asked'),
];
const agents = [
  ['agent-1', ofAgent(8080)],
  ['agent-2', ofAgent(8081)],
] as const;
const VALIDATOR = [
  ok('key', 'can sign'),
  warn('metagraph', 'none is named: no weights are computed', 'set VALIDATOR_METAGRAPH'),
  ok('central', 'takes our signature'),
  ok('gateway', 'answers'),
];
const idsOf = (findings: readonly { id: string }[]) => findings.map(({ id }) => id);

it('tells of the machine once, of each by its name, and of nothing that a laptop has not', () => {
  const found = marketFindings({ simulated: true, agents, validator: VALIDATOR }, START);
  const own = ['executor-id', 'agent-port', 'agent', 'pod-ports-ephemeral'];
  expect(idsOf(found)).toEqual([
    'docker',
    ...own.map((id) => `agent-1/${id}`),
    ...own.map((id) => `agent-2/${id}`),
    ...['validator/key', 'validator/central', 'validator/gateway'],
  ]);
  // What its operator can set are options.
  expect(found.map(({ remedy }) => remedy).filter((remedy) => remedy !== null)).toEqual(
    [1, 2].flatMap(() => [
      'stop it or set --agent-port of npm start',
      'npm start starts it again; why it ended is in logs/ of the home',
      'set --pod-ports of npm start below 32768',
    ]),
  );
});

it('looks at real GPUs, and says that nothing runs instead of each thing that does not answer', () => {
  const silent = [
    ok('key', 'can sign'),
    fail('central', 'ECONNREFUSED', 'curl'),
    unknown('central-hotkey', 'ECONNREFUSED'),
    warn('gateway', 'nobody of ours answers', 'npm run validator'),
  ];
  const found = marketFindings({ simulated: false, agents, validator: silent }, START);
  expect(found[0]).toMatchObject({ id: 'marketplace', status: 'warn', remedy: START });
  expect(idsOf(found)).toContain('nvidia-driver');
  expect(idsOf(found)).not.toContain('agent-1/agent');
  expect(idsOf(found).filter((id) => id.startsWith('validator/'))).toEqual(['validator/key']);
  // One of them alone is a failure.
  const half = silent.map((each) => (each.id === 'gateway' ? ok('gateway', 'answers') : each));
  const failing = marketFindings({ simulated: false, agents, validator: half }, START);
  expect(failing).toContainEqual(
    expect.objectContaining({ id: 'validator/central', status: 'fail' }),
  );
});
