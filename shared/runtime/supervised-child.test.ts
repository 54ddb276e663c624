import { expect, it } from 'vitest';
import { eventually } from '../../test/fakes/eventually.ts';
import { systemClock } from './clock.ts';
import { ConfigError } from './config.ts';
import { createLog } from './log.ts';
import { superviseChild } from './supervised-child.ts';

function supervise(script: string) {
  const printed: string[] = [];
  const ends: string[] = [];
  const child = superviseChild({
    name: 'agent-1',
    arguments: ['-e', script],
    environment: { PATH: process.env['PATH'] ?? '' },
    output: { write: (chunk) => printed.push(String(chunk)), place: 'log: agent-1.log' },
    clock: systemClock,
    log: createLog({ name: 'test', level: 'silent' }),
    onReady: () => undefined,
    onEnd: (how) => ends.push(how),
  });
  return { child, printed, ends };
}

it('restarts a child, and reports equal ends once, with the last error and the place of the output', async () => {
  const { child, printed, ends } = supervise(
    'console.error("agent: the port is in use"); process.exit(1)',
  );
  try {
    await eventually('three ends', () => child.startFailure() !== null, 30_000);
    const end = 'exit code 1: agent: the port is in use (log: agent-1.log)';
    expect([ends, child.hasServed()]).toEqual([[end], false]);
    expect(child.startFailure()?.message).toMatch(
      /^agent-1 ended \d+ times in a row: exit code 1: agent: the port is in use/,
    );
    expect(printed.length).toBeGreaterThanOrEqual(3);
  } finally {
    await child.stop();
  }
});

it('does not restart a child that rejects its configuration', async () => {
  const { child, ends } = supervise('console.error("AGENT_PORT: too small"); process.exit(6)');
  await child.ended;
  const end = 'exit code 6: AGENT_PORT: too small (log: agent-1.log)';
  expect(ends).toEqual([end]);
  const failure = child.startFailure();
  expect(failure).toBeInstanceOf(ConfigError);
  expect(failure?.message).toBe(`agent-1 rejects its configuration: ${end}`);
});
