import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PodSpec } from '#shared/api/agent/pod.ts';
import { inTransaction, openSqlite } from '#shared/runtime/sqlite.ts';
import { podSpec } from '../../test/fakes/agents/test-agent.ts';
import { damageTable } from '../../test/fakes/faults/damage-file.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createLeaseStore } from '../leases/lease.store.ts';
import { createPodStore, type PodRow } from '../pods/pod.store.ts';
import { newPodRow } from '../pods/pod-row.ts';
import { endRebuild, openDatabase, openHome, rebuildOf } from './database.ts';

/** Options to open a home with key files. */
const openingOf = (home: string) => ({
  nowMs: 1_795_762_800_000,
  sshPorts: () => ({}),
  openKeys() {
    for (const name of ['identity.key', 'secret.key']) writeFileSync(join(home, name), 'key');
  },
});

function row(id: string, change: Partial<PodRow> = {}): PodRow {
  const content = { spec_json: JSON.stringify(PodSpec.parse(podSpec())), spec_hash: 'hash' };
  return { ...newPodRow(id, 1, content, 1), ...change };
}

it('retains rows when reopened, and migrates only once', () => {
  const home = mkdtempSync(join(tmpdir(), 'podwright-'));
  const first = openDatabase(join(home, 'agent.sqlite'));
  createPodStore(first).put(row('a', { reason: 'ImageAuth', message: 'no' }));
  first.close();
  const again = openDatabase(join(home, 'agent.sqlite'));
  expect(createPodStore(again).get('a')).toEqual(row('a', { reason: 'ImageAuth', message: 'no' }));
  again.exec(`UPDATE meta SET value = '99' WHERE name = 'schema'`);
  again.close();
  expect(() => openDatabase(join(home, 'agent.sqlite'))).toThrow(/schema 99/);
  rmSync(home, { recursive: true });
});

it('migrates pods of a schema that had neither changes in place nor boot ids', () => {
  const home = mkdtempSync(join(tmpdir(), 'podwright-'));
  const old = openSqlite(join(home, 'agent.sqlite'));
  for (const file of ['schema.sql', 'schema-2-ssh.sql']) {
    old.exec(readFileSync(new URL(file, import.meta.url), 'utf8'));
  }
  old.exec('CREATE TABLE meta (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT');
  old.exec(`INSERT INTO meta (name, value) VALUES ('schema', '2')`);
  const later = ['staged_json', 'fallback_json', 'refused_json', 'boot_id', 'stopped', 'launched'];
  const columns = Object.fromEntries(
    Object.entries(row('a')).filter(([name]) => !later.includes(name)),
  );
  const names = Object.keys(columns);
  const values = names.map((name) => `:${name}`).join(', ');
  old.prepare(`INSERT INTO pods (${names.join(', ')}) VALUES (${values})`).run(columns);
  old.close();
  const database = openDatabase(join(home, 'agent.sqlite'));
  // Pods of earlier schemas count as launched.
  expect(createPodStore(database).get('a')).toEqual({ ...row('a'), launched: 1 });
  database.close();
  rmSync(home, { recursive: true });
});

it('keeps the SSH ports of pods from agents with one host key per pod out of use for a day', () => {
  const home = mkdtempSync(join(tmpdir(), 'podwright-'));
  const path = join(home, 'agent.sqlite');
  const old = openDatabase(path);
  old.exec(
    `ALTER TABLE leases DROP COLUMN cooling_ms; UPDATE meta SET value = '14' WHERE name = 'schema'`,
  );
  for (const slot of ['22', '80']) {
    old.exec(`INSERT INTO leases (kind, key, pod_id, state, until_ms, slot)
      VALUES ('port', '200${slot}', 'a', 'held', 0, '${slot}')`);
  }
  old.close();
  const database = openDatabase(path);
  const cooling = createLeaseStore(database).list('port');
  expect(cooling.map(({ slot, cooling_ms }) => [slot, cooling_ms])).toEqual([
    ['22', 86_400_000],
    ['80', 0],
  ]);
  database.close();
  rmSync(home, { recursive: true });
});

it('lets only one agent use a home', () => {
  const home = mkdtempSync(join(tmpdir(), 'podwright-'));
  const first = openHome(home, openingOf(home));
  expect(() => openHome(home, openingOf(home))).toThrow(/another agent uses/);
  first.close();
  openHome(home, openingOf(home)).close();
  rmSync(home, { recursive: true });
});

it('moves a damaged store aside and opens an empty one, also in place of a missing one', () => {
  const home = mkdtempSync(join(tmpdir(), 'podwright-'));
  const path = join(home, 'agent.sqlite');
  const open = () => openHome(home, { ...openingOf(home), sshPorts: () => ({ a: 20_001 }) });
  const first = open();
  expect(rebuildOf(first.database)).toBeNull();
  createPodStore(first.database).put(row('a'));
  first.close();
  damageTable(path, 'pods');
  const second = open();
  const aside = `${path}.damaged-20261127T070000Z`;
  const rebuild = rebuildOf(second.database);
  expect(rebuild?.cause).toMatch(`the store ${path} was damaged (`);
  expect(rebuild?.cause).toMatch(`was moved to ${aside}`);
  expect(rebuild?.ssh_ports).toEqual({ a: 20_001 });
  expect(existsSync(aside)).toBe(true);
  expect(createPodStore(second.database).get('a')).toBeNull();
  second.close();
  // An interrupted rebuild continues at the next start.
  const third = open();
  expect(rebuildOf(third.database)).toEqual(rebuild);
  endRebuild(third.database);
  third.close();
  rmSync(path);
  const fourth = open();
  expect(rebuildOf(fourth.database)?.cause).toBe(`the store ${path} was missing`);
  fourth.close();
  rmSync(home, { recursive: true });
});

it('omits a corrupt row from the list and reports its id', () => {
  const database = openDatabase(':memory:');
  const pods = createPodStore(database);
  pods.put(row('good'));
  pods.put(row('bad-phase'));
  pods.put(row('bad-spec', { spec_json: '{}' }));
  pods.put(row('bad-conditions', { conditions_json: '{' }));
  database.exec(`UPDATE pods SET phase = 'nonsense' WHERE id = 'bad-phase'`);
  const corrupt: string[] = [];
  expect(pods.list((id) => corrupt.push(id)).map(({ id }) => id)).toEqual(['good']);
  expect(corrupt.toSorted()).toEqual(['bad-conditions', 'bad-phase', 'bad-spec']);
});

it('retains only the newest events of a pod', () => {
  const pods = createPodStore(openDatabase(':memory:'));
  for (let at = 1; at <= 150; at += 1) pods.addEvent(row('a', { updated_ms: at }));
  pods.addEvent(row('b'));
  const times = pods.events('a').map((event) => event['at_ms']);
  expect(times).toEqual(Array.from({ length: 100 }, (_, index) => index + 51));
  expect(pods.events('b')).toHaveLength(1);
});

it('deletes old tombstones, and the oldest beyond the limit', () => {
  const pods = createPodStore(openDatabase(':memory:'));
  pods.put(row('live'));
  for (let at = 1; at <= 1_010; at += 1) {
    pods.put(row(`gone-${at}`, { phase: 'removed', phase_since_ms: at }));
  }
  pods.dropTombstones(6);
  const left = pods.list().filter(({ phase }) => phase === 'removed');
  expect(left).toHaveLength(1_000);
  expect(Math.min(...left.map((pod) => pod.phase_since_ms))).toBe(11);
  expect(pods.get('live')).not.toBeNull();
});

it('never leases a key twice, whatever the state of its lease', () => {
  const database = openDatabase(':memory:');
  const leases = createLeaseStore(database);
  const clock = createManualClock(1_000);
  leases.take({ kind: 'port', key: '20000', podId: 'a', slot: '22' });
  const [lease] = leases.heldBy('port', 'a');
  if (lease === undefined) throw new Error('the lease is missing');
  const grab = () => leases.take({ kind: 'port', key: '20000', podId: 'b', slot: '22' });
  expect(grab).toThrow(/UNIQUE/);
  leases.setState({ ...lease, pod_id: 'b' }, 'cooling', 0);
  expect(leases.heldBy('port', 'a')).toEqual([lease]);
  leases.setState(lease, 'cooling', clock.now() + 10);
  expect(leases.heldBy('port', 'a')).toEqual([]);
  leases.dropCooled(clock.now());
  expect(grab).toThrow(/UNIQUE/);
  leases.dropCooled(clock.now() + 10);
  grab();
  expect(leases.list('port')).toMatchObject([{ key: '20000', pod_id: 'b', state: 'held' }]);
});

it('rolls a lease back when the transaction fails', () => {
  const database = openDatabase(':memory:');
  const leases = createLeaseStore(database);
  const fail = () =>
    inTransaction(database, () => {
      leases.take({ kind: 'gpu', key: 'GPU-1', podId: 'a', slot: '' });
      throw new Error('refused');
    });
  expect(fail).toThrow('refused');
  expect(leases.get('gpu', 'GPU-1')).toBeNull();
});
