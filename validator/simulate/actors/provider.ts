/** Providers: each enrols one host, changes its price by a strategy, and suffers the faults of the scenario. */
import type { Random } from '#shared/runtime/random.ts';
import { toHex } from '#shared/signing/sr25519.ts';
import type { Cheat } from '../../coverage/cheats.ts';
import { cheatForEver, PERFORMED_CHEATS } from '../fleet/cheating-hosts.ts';
import type { Cards } from '../fleet/host-inventory.ts';
import type { HostClass, PRICE_STRATEGIES } from '../scenarios/scenario.ts';
import type { World } from '../world/world.ts';
import { AddedNode, codeIn, expectAnswer, LoggedIn, MadeToken } from './answers.ts';
import { around, exponential, shareOf, weighted, weightedKey } from './draws.ts';
import { boundedPrice, inCents } from './price-bounds.ts';

export type Provider = {
  name: string;
  executorId: string;
  region: string;
  /** Null for a host that does not cheat. */
  cheat: Cheat | null;
  hostClass: HostClass;
  strategy: (typeof PRICE_STRATEGIES)[number];
  priceUsd: number;
  headers: Record<string, string>;
  random: Random;
};

const AGENT_PORT = 8_080;
/** The image of probes is small, and is on the host after the first probe. */
const PROBE_START_MS = 1_000;
const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;
const PERMILLE = 1_000;
const MICRO_USD = 1_000_000;
const BYTE = 256;

const uusd = (usd: number): number => Math.round(usd * MICRO_USD);

/** Address in 10.0.0.0/8. */
const addressOf = (number: number): string =>
  `10.${Math.floor(number / BYTE / BYTE)}.${Math.floor(number / BYTE) % BYTE}.${number % BYTE}`;

/** Signs in, adds the host to the market, and adds its model to the fleet. */
export async function enrolProvider(world: World, number: number): Promise<Provider> {
  const { clock, call, fleet, scenario, journal } = world;
  const { supply } = scenario;
  const name = `provider-${number}`;
  const random = world.randomOf(name);
  const signer = await world.signerOf(name);
  const hostClass = weighted(random, supply.classes);
  const region = supply.regions[random.int(supply.regions.length)] ?? '';
  const price = around(random, hostClass.price_usd, hostClass.price_spread_permille);
  const priceUsd = inCents(price);
  const message = String(Math.floor(clock.now() / SECOND_MS));
  const signature = toHex(signer.sign(new TextEncoder().encode(message)));
  const session = await call({
    method: 'POST',
    path: '/portal/auth/login-flexible',
    body: { miner_hotkey: signer.hotkey, message, signature },
  });
  const { token } = expectAnswer(LoggedIn, session, 'log-in').data;
  // A session lasts for seven days; a token lasts.
  const made = await call({
    method: 'POST',
    path: '/portal/auth/tokens',
    headers: { authorization: `Bearer ${token}` },
    body: { name },
  });
  const headers = {
    authorization: `Bearer ${expectAnswer(MadeToken, made, 'provider token').data.token}`,
  };
  const ip = addressOf(number);
  const { gpu, gpus, memory_mib: memoryMib } = hostClass;
  const offer = { gpu_type: gpu, ip_address: ip, port: AGENT_PORT, gpu_count: gpus };
  const added = await call({
    method: 'POST',
    path: '/portal/executors',
    headers,
    body: { ...offer, price_per_gpu: priceUsd },
  });
  const { id } = expectAnswer(AddedNode, added, 'new node').data;
  const cards: Cards = { name: gpu, count: gpus, memoryMib };
  const cheat = cheatOf(world, name);
  const host = fleet.add({
    id,
    cards,
    probeStartMs: PROBE_START_MS,
    startMs: Math.round(around(random, hostClass.start_seconds, PERMILLE / 2) * SECOND_MS),
    listing: {
      id,
      executor_ip_address: ip,
      executor_ip_port: String(AGENT_PORT),
      uptime_in_minutes: null,
      miner_hotkey: signer.hotkey,
      gpu_type: gpu,
      gpu_count: gpus,
      gpu_uuids: [],
      rented: false,
      pod_ids: [],
      price_uusd: null,
      collateral_deposited: false,
    },
  });
  if (cheat !== null) await cheatForEver(cheat, host, fleet);
  const strategy = weightedKey(random, supply.strategies);
  journal.record({
    kind: 'node-added',
    actor: name,
    executor: id,
    gpu,
    gpus,
    cheat: cheat?.id,
    region,
    strategy,
    price_uusd: uusd(priceUsd),
  });
  world.prices.add(gpu);
  return { name, executorId: id, region, cheat, hostClass, strategy, priceUsd, headers, random };
}

/** Returns the cheat that the provider's host performs; null for an honest host. */
function cheatOf({ randomOf, scenario }: World, name: string): Cheat | null {
  const id = shareOf(randomOf(`${name} cheat`), scenario.cheats);
  return PERFORMED_CHEATS.find((cheat) => cheat.id === id) ?? null;
}

/** Changes the price about once a day, for ever. */
export async function runPrices(world: World, provider: Provider): Promise<void> {
  if (provider.strategy === 'fixed') return;
  const { clock, call, fleet, scenario, journal } = world;
  const step = scenario.supply.price_step_permille / PERMILLE;
  const first = provider.priceUsd;
  for (;;) {
    await clock.sleep(exponential(provider.random, DAY_MS));
    const { pods } = fleet.agents.host(provider.executorId);
    const isRented = pods.size > 0 && provider.strategy !== 'war';
    const wanted = provider.priceUsd * (isRented ? 1 + step : 1 - step);
    const priceUsd = boundedPrice(wanted, first);
    if (priceUsd === provider.priceUsd) continue;
    const answer = await call({
      method: 'POST',
      path: `/portal/executors/${provider.executorId}/update-price`,
      headers: provider.headers,
      body: { price_per_gpu: priceUsd },
    });
    const code = codeIn(answer);
    if (code === null) {
      world.prices.change(provider.hostClass.gpu, (priceUsd - provider.priceUsd) / first);
      provider.priceUsd = priceUsd;
    }
    const { name: actor, executorId: executor } = provider;
    journal.record({ kind: 'price', actor, executor, price_uusd: uusd(priceUsd), code });
  }
}
