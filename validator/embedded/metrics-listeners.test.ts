import { createServer } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { freePorts } from '../../test/fakes/free-ports.ts';
import { chooseMetricsAddresses, metricsUrls } from './metrics-listeners.ts';
import { parseStartOptions } from './options.ts';

const servers: ReturnType<typeof createServer>[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) {
    await new Promise((resolve) => server.close(resolve));
  }
});

async function occupy(port: number): Promise<void> {
  const server = createServer();
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
}

it('chooses the given ports, or the next ten if one of the needed ports is in use', async () => {
  const { first } = await freePorts(20);
  const options = parseStartOptions(['--metrics-port', String(first)]).options;
  const chosen = async () => metricsUrls(await chooseMetricsAddresses(options, {}), options.agents);
  const urlsFrom = (port: number) => [
    { job: 'podwright-central', url: `http://127.0.0.1:${port}/metrics` },
    { job: 'podwright-validator', url: `http://127.0.0.1:${port + 1}/metrics` },
    { job: 'podwright-agent', url: `http://127.0.0.1:${port + 2}/metrics` },
    { job: 'podwright-agent', url: `http://127.0.0.1:${port + 3}/metrics` },
  ];
  await occupy(first + 4);
  expect(await chosen()).toEqual(urlsFrom(first));
  await occupy(first + 3);
  expect(await chosen()).toEqual(urlsFrom(first + 10));
});

it('uses CENTRAL_METRICS_LISTEN for the central API, with a URL that local callers reach', async () => {
  const environment = { CENTRAL_METRICS_LISTEN: '0.0.0.0:9101' };
  const addresses = await chooseMetricsAddresses(parseStartOptions([]).options, environment);
  expect(addresses.central).toEqual({ host: '0.0.0.0', port: 9101 });
  expect(metricsUrls(addresses, 0)[0]?.url).toBe('http://127.0.0.1:9101/metrics');
});

it('rejects if no ports are left, and names the option', async () => {
  const options = parseStartOptions(['--metrics-port', '65535']).options;
  await expect(chooseMetricsAddresses(options, {})).rejects.toThrow(/--metrics-port/);
});
