import { expect, it } from 'vitest';
import { createHttpServer } from '#shared/http/server.ts';
import { createLog } from '#shared/log.ts';
import { systemRandom } from '#shared/random.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { registerMetricsRoutes } from './metrics.routes.ts';
import { createMetrics } from './metrics.ts';

function setUp() {
  const clock = createManualClock();
  const metrics = createMetrics({ clock, executorId: 'x' });
  const log = createLog({ name: 'test', level: 'silent' });
  const server = createHttpServer({ log, clock, random: systemRandom, bodyLimitBytes: 1000 });
  registerMetricsRoutes(server, { metrics });
  const scrape = async () => (await server.inject('/metrics')).body.split('\n');
  return { clock, metrics, server, scrape };
}

it('shows what it was told last', async () => {
  const { metrics, clock, scrape } = setUp();
  metrics.setPods(['running', 'running', 'pulling']);
  metrics.setPods(['running']);
  metrics.setGpuLeases([{ uuid: 'GPU-a', state: 'held' }]);
  metrics.setGpuLeases([{ uuid: 'GPU-b', state: 'free' }]);
  metrics.authFailed('skew');
  metrics.collected('gpu');
  await clock.advance(1_500);
  const lines = await scrape();
  expect(lines).toEqual(
    expect.arrayContaining([
      'podwright_agent_pods{phase="running"} 1',
      'podwright_agent_pods{phase="pulling"} 0',
      'podwright_agent_gpu_lease_state{uuid="GPU-b",state="free"} 1',
      'podwright_agent_auth_failures_total{reason="skew"} 1',
      'podwright_agent_collector_age_seconds{collector="gpu"} 1.5',
      expect.stringMatching(/^podwright_agent_build_info\{version="\d/),
      expect.stringMatching(/^podwright_agent_event_loop_lag_seconds \d/),
    ]),
  );
  expect(lines.join()).not.toContain('GPU-a');
  metrics.close();
});

it('names metrics by the rules of promtool, in the text format', async () => {
  const { metrics, server, scrape } = setUp();
  const response = await server.inject('/metrics');
  expect(response.headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/);
  for (const line of await scrape()) {
    const [, name, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    if (name === undefined) continue;
    expect(name).toMatch(/^podwright_agent_[a-z_]+$/);
    expect(name.endsWith('_total')).toBe(type === 'counter');
  }
  metrics.close();
});
