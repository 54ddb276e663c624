import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { naiveUtc, parseIsoTime } from '#shared/runtime/clock.ts';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { testInventory } from '../../../../test/fixtures/host-inventory.ts';
import { huidOf } from './executor-response.ts';

let market: TestMarket;

beforeEach(async () => {
  market = await createTestMarket();
});
afterEach(() => market.close());

async function idsOf(query: string): Promise<string[]> {
  const { status, body } = await market.call('GET', `/executors?${query}`);
  expect(status).toBe(200);
  return body.map((row: { id: string }) => row.id);
}

describe('the list of free nodes', () => {
  it('is filtered by the age of the last check, and explains the filter', async () => {
    const old = await market.verifiedNode({ price: 2 });
    await market.clock.advance(45 * 60_000);
    const fresh = await market.verifiedNode({ price: 3 });
    expect(await idsOf('max_check_age_minutes=46')).toEqual([old.id, fresh.id]);
    expect(await idsOf('max_check_age_minutes=44')).toEqual([fresh.id]);
    await market.clock.advance(15 * 60_000);
    expect(await idsOf('max_check_age_minutes=44')).toEqual([fresh.id]);
    await market.clock.advance(60 * 60_000);
    const ages = new Map<string, number>();
    for (const { id, last_checked_at: at } of (await market.call('GET', '/executors')).body) {
      ages.set(id, Math.ceil((market.clock.now() - (parseIsoTime(`${at}Z`) ?? 0)) / 60_000));
    }
    const { body } = await market.call(
      'GET',
      '/executors?max_check_age_minutes=44&size=1&explain=true',
    );
    expect(body).toMatchObject({
      executors: [],
      funnel: [
        { constraint: 'offered', remaining: 2 },
        { constraint: 'max_check_age_minutes', remaining: 0 },
      ],
      nearest: [
        { executor_id: fresh.id, requested: 44, offered: ages.get(fresh.id) },
        { executor_id: old.id, offered: ages.get(old.id) },
      ],
    });
    expect((await market.call('GET', '/executors?max_check_age_minutes=0')).status).toBe(422);
  });

  it('is sorted by price and filtered by the query', async () => {
    const h100 = await market.verifiedNode({ gpus: 4, minimum: 1, price: 3 });
    const cheap = await market.verifiedNode({
      gpus: 1,
      gpuType: 'NVIDIA L40S',
      name: 'NVIDIA L40S',
    });
    expect(await idsOf('')).toEqual([cheap.id, h100.id]);
    expect(await idsOf('size=1&page=2')).toEqual([h100.id]);
    expect(await idsOf('size=1000')).toHaveLength(2);
    expect(await idsOf('machine_names=NVIDIA%20L40S,Nothing')).toEqual([cheap.id]);
    expect(await idsOf('machine_names=L40S')).toEqual([]);
    expect(await idsOf('price_lte=0.8')).toEqual([cheap.id]);
    expect(await idsOf('price_gte=0.81')).toEqual([h100.id]);
    expect(await idsOf('gpu_count_gte=2')).toEqual([h100.id]);
    expect(await idsOf('gpu_count_lte=1')).toEqual([cheap.id]);
    expect(await idsOf('bookmarked=true')).toEqual([]);
    expect(await idsOf('bookmarked=false')).toHaveLength(2);
    expect(await idsOf('machine_request_id=x')).toEqual([]);
    expect(await idsOf('collateral_deposited=true')).toEqual([]);
    expect(await idsOf('collateral_deposited=false&available=true')).toHaveLength(2);
    expect(await idsOf('min_download_mbps=100')).toEqual([]);
    expect(await idsOf('nvlink=true')).toEqual([]);
    await market.report(h100, { line: { download_mbps: 940, upload_mbps: 210 } }, { gpus: 4 });
    expect(await idsOf('min_download_mbps=900')).toEqual([h100.id]);
    expect(await idsOf('min_download_mbps=0')).toHaveLength(2);
    const [, fast] = (await market.call('GET', '/executors')).body;
    expect(fast).toMatchObject({
      effective_download_speed_mbps: 940,
      effective_upload_speed_mbps: 210,
      specs: { network: { download_speed: 940, upload_speed: 210 } },
    });

    expect(await idsOf('gpu_type=l40s')).toEqual([cheap.id]);
    expect(await idsOf('price_per_hour_lte=11')).toEqual([cheap.id]);
    expect(await idsOf('price_per_hour_lte=12')).toHaveLength(2);
    expect(await idsOf(`ids=${h100.id},00000000-0000-4000-8000-000000000000`)).toEqual([h100.id]);
    expect((await market.call('GET', '/executors?ids=x')).status).toBe(422);
    expect(await idsOf('min_reliability=0.1')).toEqual([]);
    const { specs } = fast;
    for (const [name, kib] of [
      ['min_ram_gb', specs.ram.total],
      ['min_disk_gb', specs.hard_disk.free],
    ] as const) {
      const gb = (kib * 1_024) / 1e9;
      expect([name, await idsOf(`${name}=${gb - 1}`)]).toEqual([name, [cheap.id, h100.id]]);
      expect([name, await idsOf(`${name}=${gb + 1}`)]).toEqual([name, []]);
    }
    expect(await idsOf(`min_cpus=${specs.cpu.count}`)).toHaveLength(2);
    expect(await idsOf(`min_cpus=${specs.cpu.count + 1}`)).toEqual([]);
    expect(await idsOf('min_vram_gb=1000')).toEqual([]);
    expect(fast.last_checked_at).toBe(naiveUtc(market.clock.now()));

    const { headers } = await market.call('GET', '/executors?price_lte=1&gpu_count_gte=2');
    expect(headers['x-filter-funnel']).toBe('offered=2; price_lte=1; gpu_count_gte=0');
  });

  it('returns one node while the market offers it, also if all its GPUs are rented', async () => {
    const { id } = await market.verifiedNode({ gpus: 2 });
    const account = await market.renter();
    const read = () => market.call('GET', `/executors/${id}`, { headers: account.key });
    const [listed] = (await market.call('GET', '/executors', { headers: account.key })).body;
    expect((await read()).body).toEqual(listed);
    await market.rent(account, id);
    expect((await market.call('GET', '/executors')).body).toEqual([]);
    expect((await read()).body).toMatchObject({ id, available_gpu_count: 0 });
    const waiting = await market.addNode();
    const refused = await market.call('GET', `/executors/${waiting.id}`);
    expect([refused.status, refused.body.error.code]).toEqual([404, 'node_not_found']);
  });

  it('reports the number of nodes that each filter left, and the nodes nearest to the first filter that left none', async () => {
    const dear = await market.verifiedNode({ gpus: 4, minimum: 1, price: 3 });
    const cheap = await market.verifiedNode({ gpus: 1, price: 1.5 });
    const explained = (query: string) => market.call('GET', `/executors?explain=true&${query}`);
    const some = await explained('price_lte=2&view=summary');
    expect(some.body).toMatchObject({
      executors: [{ id: cheap.id }],
      funnel: [
        { constraint: 'offered', remaining: 2 },
        { constraint: 'price_lte', remaining: 1 },
      ],
      nearest: [],
    });
    const none = await explained('price_gte=0.1&price_lte=0.5&gpu_count_gte=2');
    const near = { constraint: 'price_lte', requested: 0.5 };
    expect(none.body).toEqual({
      executors: [],
      funnel: [
        { constraint: 'offered', remaining: 2 },
        { constraint: 'price_lte', remaining: 0 },
        { constraint: 'price_gte', remaining: 0 },
        { constraint: 'gpu_count_gte', remaining: 0 },
      ],
      nearest: [
        { ...near, offered: 1.5, executor_id: cheap.id, executor_huid: huidOf(cheap.id) },
        { ...near, offered: 3, executor_id: dear.id, executor_huid: huidOf(dear.id) },
      ],
      without_location: null,
    });
    expect(none.headers['x-filter-funnel']).toBe(
      'offered=2; price_lte=0; price_gte=0; gpu_count_gte=0',
    );
    const unmeasured = await explained('lat=0&lon=0&max_distance_mile=10');
    expect(unmeasured.body.nearest).toMatchObject([
      { constraint: 'max_distance_mile', requested: 10, offered: 'unknown' },
      { offered: 'unknown' },
    ]);
    expect((await explained('machine_names=NVIDIA%20B200')).body.nearest).toMatchObject([
      { requested: 'NVIDIA B200', offered: 'NVIDIA H100 80GB HBM3' },
      {},
    ]);
    expect((await market.call('GET', '/executors?explain=maybe')).status).toBe(422);
  });

  it('counts free GPUs, and omits a node with fewer than its minimum', async () => {
    const node = await market.verifiedNode({ gpus: 4, minimum: 2 });
    const account = await market.renter();
    await market.rent(account, node.id, { gpu_count: 2 });
    const [row] = (await market.call('GET', '/executors')).body;
    expect(row).toMatchObject({ gpu_count: 4, available_gpu_count: 2 });
    expect(await idsOf('gpu_count_gte=3')).toEqual([]);
    await market.rent(account, node.id, { gpu_count: 2 });
    expect(await idsOf('')).toEqual([]);
  });

  it('rejects a distance filter without coordinates', async () => {
    const near = await market.verifiedNode();
    await market.verifiedNode();
    await market.ports.db
      .updateTable('executors')
      .set({ lat: 48.85, lon: 2.35 })
      .where('id', '=', near.id)
      .execute();
    expect(await idsOf('lat=51.5&lon=-0.12&max_distance_mile=300')).toEqual([near.id]);
    expect(await idsOf('lat=51.5&lon=-0.12&max_distance_mile=100')).toEqual([]);
    const refused = await market.call('GET', '/executors?max_distance_mile=5&lat=1');
    expect(refused.status).toBe(422);
    expect(refused.body.validation_errors).toMatchObject([{ field: 'query.lon' }]);
  });

  it('rejects malformed values', async () => {
    for (const query of [
      'price_lte=cheap',
      'gpu_count_gte=1.5',
      'bookmarked=perhaps',
      'size=1001',
    ]) {
      expect((await market.call('GET', `/executors?${query}`)).status, query).toBe(422);
    }
  });

  it('omits specs in the summary, and bookmarks without a credential', async () => {
    await market.verifiedNode();
    const account = await market.signUp();
    const [full] = (await market.call('GET', '/executors')).body;
    expect(full.specs.ram.total).toBe(256 * 1024 * 1024);
    expect(full.specs.gpu.details[0]).toMatchObject({ capacity: 81_559, name: full.machine_name });
    expect(full).not.toHaveProperty('is_bookmarked');
    const summary = await market.call('GET', '/executors?view=summary', { headers: account.key });
    expect(summary.body[0]).not.toHaveProperty('specs');
    expect(summary.body[0]).toMatchObject({ is_bookmarked: false });
    expect((await market.call('GET', '/executors', { headers: { 'x-api-key': 'x' } })).status).toBe(
      200,
    );
  });
});

it('shows the interconnect of a node, and filters by it', async () => {
  const joined = await market.addNode();
  const inventory = testInventory(joined.id, { collectedMs: market.clock.now() });
  const gpus = inventory.gpu.devices.map(({ uuid }, row) => ({
    uuid,
    numa_node: 0,
    cpus: null,
    links: row === 0 ? ['X', 'NV18'] : ['NV18', 'X'],
  }));
  const gpu = { ...inventory.gpu, topology: { gpus } };
  await market.report(joined, { inventory: { ...inventory, gpu } });
  const silent = await market.verifiedNode();
  expect(await idsOf('nvlink=true')).toEqual([joined.id]);
  expect(await idsOf('nvlink=false')).toEqual([silent.id]);
  const rows = (await market.call('GET', '/executors')).body;
  expect(rows.find((row: { id: string }) => row.id === joined.id)).toMatchObject({
    nvlink: true,
    interconnect: 'NVLink',
    specs: { interconnect: { nvlink: true, nvlink_links: 18, gpu_pairs: 1, nvlink_pairs: 1 } },
  });
  expect(rows.find((row: { id: string }) => row.id === silent.id)).toMatchObject({
    nvlink: null,
    interconnect: null,
    specs: { interconnect: null },
  });
});

describe('obstacles to renting a node', () => {
  it.each([
    ['paused', 'executors', { paused: 1 }, 'node_paused_by_provider', 409],
    ['failed', 'executors', { state: 'failed' }, 'node_not_verified', 400],
    ['provider opted out', 'providers', { opted_in: 0 }, 'node_paused_by_provider', 409],
    ['provider banned', 'providers', { banned_at: 1 }, 'provider_banned', 409],
  ] as const)('%s', async (_, table, change, code, status) => {
    const node = await market.verifiedNode();
    await market.ports.db.updateTable(table).set(change).execute();
    expect(await idsOf('')).toEqual([]);
    const rentability = (await market.call('GET', `/executors/${node.id}/rentability`)).body;
    expect(rentability.rentable).toBe(false);
    expect(rentability.reasons).toMatchObject([{ code }]);
    const refused = await market.rent(await market.renter(), node.id);
    expect(refused.status).toBe(status);
    expect(refused.body.error.code).toBe(code);
  });
});

describe('market figures', () => {
  it('counts nodes, machines and capacity', async () => {
    const node = await market.verifiedNode({ gpus: 2, minimum: 1 });
    await market.addNode();
    await market.rent(await market.renter(), node.id, { gpu_count: 1 });
    expect((await market.call('GET', '/executors/count')).body).toEqual({ count: 1 });
    expect((await market.call('GET', '/executors/total-count')).body).toEqual({ total_count: 2 });
    expect((await market.call('GET', '/executors/stats')).body).toEqual([
      expect.objectContaining({
        gpu_type: 'H100',
        total_gpu_count: 2,
        rented_gpu_count: 1,
        rental_rate: 0.5,
        min_price_per_gpu: 2.2,
      }),
    ]);
    const machines = (await market.call('GET', '/machines')).body;
    expect(machines).toContainEqual({
      name: 'NVIDIA H100 80GB HBM3',
      price: 2.2,
      rental_rate: 0.5,
      total_gpu_count: 2,
    });
    expect((await market.call('GET', '/machines/capacity')).body).toEqual([
      {
        base_model: 'H100',
        buckets: {
          1: { max_cap: 1, unrented_count: 1, hourly_rate: 2.2 },
          2: { max_cap: 1, unrented_count: 0, hourly_rate: 4.4 },
        },
      },
    ]);
  });

  it('sums the nodes of each machine type, and the machine types of each GPU model', async () => {
    const pcie = 'NVIDIA H100 PCIe';
    await market.verifiedNode({ gpus: 8, price: 3 });
    await market.verifiedNode({ gpus: 4, minimum: 1, price: 2.5 });
    await market.verifiedNode({ gpus: 2, minimum: 1, price: 2, gpuType: pcie, name: pcie });
    const paused = await market.verifiedNode({ gpus: 8, price: 1.5 });
    await market.ports.db
      .updateTable('executors')
      .set({ paused: 1 })
      .where('id', '=', paused.id)
      .execute();
    const stats = (await market.call('GET', '/executors/stats')).body;
    expect(stats).toMatchObject([
      { machine_name: pcie, total_gpu_count: 2, min_price_per_gpu: 2, max_price_per_gpu: 2 },
      {
        machine_name: 'NVIDIA H100 80GB HBM3',
        total_executor_count: 2,
        rented_executor_count: 0,
        available_executor_count: 2,
        total_gpu_count: 12,
        rented_gpu_count: 0,
        available_gpu_count: 12,
        min_price_per_gpu: 2.5,
        avg_price_per_gpu: 2.75,
        max_price_per_gpu: 3,
      },
    ]);
    expect((await market.call('GET', '/machines/capacity')).body).toEqual([
      {
        base_model: 'H100',
        buckets: {
          1: { max_cap: 2, unrented_count: 2, hourly_rate: 2 },
          2: { max_cap: 2, unrented_count: 2, hourly_rate: 4 },
          4: { max_cap: 1, unrented_count: 1, hourly_rate: 10 },
          8: { max_cap: 1, unrented_count: 1, hourly_rate: 24 },
        },
      },
    ]);
    const machines = (await market.call('GET', '/machines')).body;
    expect(machines.find(({ name }: { name: string }) => name === pcie)).toMatchObject({
      total_gpu_count: 2,
      rental_rate: 0,
    });
  });

  it('returns an image for a known GPU and 404 for any other', async () => {
    const path = '/executors/default-docker-image?driver_version=570&gpu_model=';
    const images = (await market.call('GET', `${path}H100`)).body;
    expect(images).toContainEqual(expect.objectContaining({ docker_image: 'ubuntu' }));
    const refused = await market.call('GET', `${path}Voodoo`);
    expect(refused.body.error).toMatchObject({ code: 'node_not_found' });
  });

  it('returns the images of a GPU without a driver version; images that need no network come first', async () => {
    const path = '/executors/default-docker-image?gpu_model=H100';
    const { status, body } = await market.call('GET', path);
    expect([status, body[0]]).toMatchObject([200, { docker_image: 'podwright.local/base' }]);
    expect((await market.call('GET', `${path}&driver_version=`)).body).toEqual(body);
  });
});

describe('hardware utilization', () => {
  it('is read from the agent, or from the last measurement while the agent does not answer', async () => {
    const node = await market.verifiedNode();
    const path = `/executors/${node.id}/hardware-utilization`;
    const host = market.agents.host(node.id);
    host.inventory = { ...host.inventory, collected_ms: market.clock.now() };
    expect((await market.call('GET', path)).body).toMatchObject({ stale: false, gpus: [{}, {}] });
    host.up = false;
    await market.clock.advance(61_000);
    expect((await market.call('GET', path)).body).toMatchObject({ stale: true });
  });

  it('returns all figures of an agent that samples, and calls the agent at most once in five seconds', async () => {
    const node = await market.verifiedNode({ gpus: 1 });
    const path = `/executors/${node.id}/hardware-utilization`;
    const host = market.agents.host(node.id);
    const { cpu, memory, disk, gpu } = host.inventory;
    const [device] = gpu.devices.map((found) => ({
      ...found,
      graphics_clock_mhz: 1_980,
      memory_clock_mhz: 2_619,
      pcie_link: 'PCIe 5 x16',
      ecc_errors: 2,
      processes: 3,
      memory_used_mib: 40_780,
    }));
    host.metrics = {
      age_ms: 4_000,
      simulated: true,
      cpu: { ...cpu, load_1m: 7.5 },
      memory,
      disk,
      network: { rx_bytes_per_second: 1_000, tx_bytes_per_second: 2_000 },
      gpus: device === undefined ? [] : [device],
      gpu_error: null,
    };
    const answers = await Promise.all([1, 2, 3].map(() => market.call('GET', path)));
    expect(host.metricsAsked).toBe(1);
    expect(answers[0]?.body).toMatchObject({
      timestamp: naiveUtc(market.clock.now() - 4_000),
      stale: false,
      simulated: true,
      cpu: { model: 'Test CPU', count: 32, load_1m: 7.5 },
      network: { rx_bytes_per_second: 1_000, tx_bytes_per_second: 2_000 },
      gpus: [
        {
          graphics_speed: 1_980,
          memory_speed: 2_619,
          pcie: 'PCIe 5 x16',
          ecc_errors: 2,
          processes: 3,
          memory_utilization: 50,
        },
      ],
    });
    host.up = false;
    await market.clock.advance(5_000);
    const last = (await market.call('GET', path)).body;
    expect([host.metricsAsked, last.stale, last.cpu.load_1m]).toEqual([2, false, 7.5]);
  });

  it('returns 404 for a node that does not exist or was never measured', async () => {
    const node = await market.addNode();
    for (const id of [node.id, '00000000-0000-4000-8000-000000000000']) {
      const { status, body } = await market.call('GET', `/executors/${id}/hardware-utilization`);
      expect(status).toBe(404);
      expect(body.error.code).toBe('node_not_found');
    }
  });
});
