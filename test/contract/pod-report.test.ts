/** Reports of renters from the report to the refund: real central API, inspections and examinations; modelled hosts. */
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { readSignedReport } from '#shared/api/central/pod-reports.ts';
import type { FleetHost } from '../../validator/simulate/fleet/fleet-host.ts';
import { createReportScene, INTERVAL_MS, type ReportScene } from '../fakes/scenes/report-scene.ts';

const HOUR_MS = 3_600_000;

let scene: ReportScene;
beforeEach(async () => {
  scene = await createReportScene();
});
afterEach(() => scene.close());

/** Limits pods to an eighth of the memory that the host reports. */
function starve(host: FleetHost): void {
  host.inPods = (inventory) => {
    const { memory } = inventory;
    return { ...inventory, memory: { ...memory, total_kib: Math.floor(memory.total_kib / 8) } };
  };
}

const states = async () => (await scene.reports()).map(({ status }: { status: string }) => status);
const kinds = async () => (await scene.mails()).map(({ kind }) => kind);

it('refunds the renter of a starving host, fails the node, notifies both sides, and ends the failure an interval later', async () => {
  const host = await scene.addHost();
  const before = await scene.balance();
  const podId = await scene.rent(host);
  starve(host);
  await scene.use(HOUR_MS);
  const paid = before - (await scene.balance());
  expect(paid).toBeGreaterThan(1);
  const reported = await scene.report(podId, { reason: 'less_memory', consent: true });
  expect(reported).toMatchObject({ status: 201, body: { status: 'open', refund: 0 } });

  await scene.examine();
  // The look inside is a suspicion only, because the renter is root in the pod.
  expect(await states()).toEqual(['examining']);
  await scene.endPod(podId);
  await scene.examine();
  const [report] = await scene.reports();
  expect(report).toMatchObject({ status: 'confirmed', finding: expect.stringMatching(/memory/) });
  expect(report.refund).toBeCloseTo(paid, 2);
  const findings = readSignedReport(report.evidence)?.findings;
  expect(findings?.map(({ means, step }) => [means, step])).toEqual([
    ['pod', null],
    ['test_rental', 'inside'],
  ]);

  expect((await scene.balance()) - before).toBeLessThanOrEqual(0);
  expect(before - (await scene.balance())).toBeLessThan(0.01);
  expect((await scene.audit()).findings).toEqual([]);
  const node = await scene.nodeOf(host);
  expect(node.state).toBe('failed');
  expect(node.checks_json).toContain('RENTER_REPORT_CONFIRMED');
  expect(node.checks_json).toContain(report.id);
  expect(await kinds()).toEqual(expect.arrayContaining(['pod-report', 'reported-node']));
  const details = (await scene.events()).map(({ detail }: { detail: string | null }) => detail);
  expect(details).toContain('pod_report_confirmed');
  expect(details.join()).toMatch(/refund of \$\d/);

  host.inPods = (inventory) => inventory;
  await scene.inspect();
  expect((await scene.nodeOf(host)).state).toBe('failed');
  for (let pass = 0; pass < 3; pass += 1) {
    await scene.clock.advance(INTERVAL_MS);
    await scene.inspect();
  }
  expect((await scene.nodeOf(host)).state).toBe('verified');
});

it('refunds the renter of a host that starves all rentals but those that it recognises', async () => {
  const hiding = await createReportScene({ isHidden: true });
  onTestFinished(() => hiding.close());
  const host = await hiding.addHost();
  host.inRentals = (inventory) => ({ ...inventory, cpu: { ...inventory.cpu, cores: 1 } });
  const before = await hiding.balance();
  const podId = await hiding.rent(host);
  await hiding.use(HOUR_MS);
  const paid = before - (await hiding.balance());
  await hiding.report(podId, { reason: 'fewer_cores' });
  await hiding.examine();
  // The node is not free yet.
  await hiding.rentHidden();
  await hiding.endPod(podId);
  await hiding.rentHidden();
  await hiding.examine();
  const [report] = await hiding.reports();
  expect(report).toMatchObject({ status: 'confirmed', finding: expect.stringMatching(/^cores: /) });
  expect(report.refund).toBeCloseTo(paid, 2);
  expect((await hiding.audit()).findings).toEqual([]);
  expect((await hiding.nodeOf(host)).state).toBe('failed');
});

it('confirms at once what the agent itself states', async () => {
  const host = await scene.addHost();
  const before = await scene.balance();
  const podId = await scene.rent(host);
  await scene.use(HOUR_MS);
  const paid = before - (await scene.balance());
  host.conduct = {
    ...host.conduct,
    inventory: (inventory) => {
      const { gpu } = inventory;
      return { ...inventory, gpu: { ...gpu, devices: gpu.devices.slice(0, 1) } };
    },
  };
  await scene.report(podId, { reason: 'fewer_gpus', consent: true });
  await scene.examine();
  expect(await scene.reports()).toMatchObject([
    { status: 'confirmed', finding: '1 of 2 cards', refund: expect.closeTo(paid, 2) },
  ]);
  expect((await scene.audit()).findings).toEqual([]);
});

it('does not confirm a report on an honest host, refunds nothing, and limits an account that reports wrongly', async () => {
  const host = await scene.addHost();
  const before = await scene.balance();
  const podId = await scene.rent(host);
  await scene.use(HOUR_MS);
  await scene.report(podId, { reason: 'less_memory', consent: true });
  await scene.examine();
  expect(await states()).toEqual(['not_confirmed']);
  await scene.endPod(podId);
  // Without consent, and after the end of the pod, a test rental decides.
  for (let again = 0; again < 2; again += 1) {
    expect((await scene.report(podId, { reason: 'other' })).status).toBe(201);
    await scene.examine();
  }
  expect(await states()).toEqual(['not_confirmed', 'not_confirmed', 'not_confirmed']);
  const refused = await scene.report(podId, { reason: 'other' });
  expect([refused.status, refused.body.error.code]).toEqual([429, 'rate_limited']);
  expect(refused.body.message).toMatch(/not confirmed/);
  expect(before - (await scene.balance())).toBeGreaterThan(1);
  expect(await kinds()).not.toContain('reported-node');
  expect((await scene.nodeOf(host)).state).toBe('verified');
  expect((await scene.audit()).findings).toEqual([]);
});

it('decides nothing if only the pod of the renter shows less, and waits while the node is rented', async () => {
  const host = await scene.addHost();
  const podId = await scene.rent(host);
  await scene.use(HOUR_MS);
  // Either the renter has replaced programs, or the host starves renters only.
  starve(host);
  await scene.report(podId, { reason: 'less_memory', consent: true });
  await scene.examine();
  await scene.clock.advance(INTERVAL_MS);
  await scene.examine();
  expect(await states()).toEqual(['examining']);
  host.inPods = (inventory) => inventory;
  await scene.endPod(podId);
  await scene.examine();
  expect(await states()).toEqual(['expired']);
  expect((await scene.reports())[0].refund).toBe(0);
  expect((await scene.nodeOf(host)).state).toBe('verified');
});

it('repeats an examination that could not be made five times, then lets the report expire', async () => {
  const host = await scene.addHost();
  const podId = await scene.rent(host);
  await scene.use(HOUR_MS);
  await scene.endPod(podId);
  host.startMs = HOUR_MS;
  await scene.report(podId, { reason: 'fewer_cores' });
  for (let attempt = 1; attempt <= 5; attempt += 1) {
    await scene.examine();
    await scene.clock.advance(2 * INTERVAL_MS);
  }
  expect(await states()).toEqual(['expired']);
});
