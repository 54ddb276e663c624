/** Addresses of the metrics listeners of a local marketplace, and how Prometheus scrapes them. */
import { type ListenAddress, listenError, localHostAndPort } from '#shared/http/listen.ts';
import { type Environment, parseConfig } from '#shared/runtime/config.ts';
import { MetricsVariable } from '../central/config.ts';
import { metricsBlocks, type StartOptions } from './options.ts';

/** `job` is the name of the scrape job that the shipped alert rules and dashboards expect. */
export type MetricsUrl = {
  job: 'podwright-central' | 'podwright-validator' | 'podwright-agent';
  url: string;
};

export type MetricsAddresses = {
  central: ListenAddress;
  validator: ListenAddress;
  /** Address of the agent with this index, from 0. */
  agent(index: number): ListenAddress;
};

/** These listeners serve plain HTTP without authentication. */
const HOST = '127.0.0.1';

/** Returns CENTRAL_METRICS_LISTEN, undefined if it is not set. Throws ConfigError for a wrong value. */
export function configuredListener(environment: Environment): ListenAddress | undefined {
  const spec = { schema: MetricsVariable, prefix: 'CENTRAL_' };
  return parseConfig(spec, environment).CENTRAL_METRICS_LISTEN;
}

/**
 * Chooses the addresses. CENTRAL_METRICS_LISTEN replaces that of the central API. Rejects if there is no block of free
 * ports, and throws ConfigError for a wrong variable.
 */
export async function chooseMetricsAddresses(
  options: StartOptions,
  environment: Environment,
): Promise<MetricsAddresses> {
  const configured = configuredListener(environment);
  for (const first of metricsBlocks(options)) {
    const addresses = addressesFrom(first);
    if (await areFree(addresses, options.agents))
      return { ...addresses, central: configured ?? addresses.central };
  }
  throw new Error('no ten ports in a row are free for metrics: choose others with --metrics-port');
}

function addressesFrom(first: number): MetricsAddresses {
  return {
    central: { host: HOST, port: first },
    validator: { host: HOST, port: first + 1 },
    agent: (index) => ({ host: HOST, port: first + 2 + index }),
  };
}

async function areFree(addresses: MetricsAddresses, agents: number): Promise<boolean> {
  for (const { host, port } of [
    addresses.central,
    addresses.validator,
    ...agentAddresses(addresses, agents),
  ]) {
    if ((await listenError({ host, port })) !== null) return false;
  }
  return true;
}

function agentAddresses({ agent }: MetricsAddresses, agents: number): ListenAddress[] {
  return Array.from({ length: agents }, (_, index) => agent(index));
}

/** Formats the addresses for `demo.json`. */
export function metricsUrls(addresses: MetricsAddresses, agents: number): MetricsUrl[] {
  const urlOf = ({ host, port }: ListenAddress) => `http://${localHostAndPort(host, port)}/metrics`;
  return [
    { job: 'podwright-central', url: urlOf(addresses.central) },
    { job: 'podwright-validator', url: urlOf(addresses.validator) },
    ...agentAddresses(addresses, agents).map(
      (agent): MetricsUrl => ({ job: 'podwright-agent', url: urlOf(agent) }),
    ),
  ];
}
