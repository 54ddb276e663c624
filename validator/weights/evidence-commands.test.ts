import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ConfigError } from '#shared/runtime/config.ts';
import { createLog } from '#shared/runtime/log.ts';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import {
  createValidatorScene,
  EPOCH_MS,
  type ValidatorScene,
} from '../../test/fakes/scenes/validator-scene.ts';
import { goldenPolicy, rewardPolicy } from '../../test/fixtures/cycle-set.ts';
import { signHead } from '../evidence/chain-head.ts';
import { createEvidence } from '../evidence/evidence.service.ts';
import { openEvidenceStore } from '../store/evidence-store.ts';
import { createEpochs } from './epoch.service.ts';
import { runEvidenceCommand } from './evidence-commands.ts';
import { createPublishedWeights, type PublishedWeights } from './published-weights.ts';

const UNKNOWN = '00000000-0000-4000-8000-000000000000';

let scene: ValidatorScene;
/** Computes three epochs; the node fails in the last cycle of the last epoch. */
beforeAll(async () => {
  scene = await createValidatorScene();
  await scene.cycle();
  await scene.market.clock.advance(EPOCH_MS);
  scene.setSound(false);
  await scene.cycle();
  await scene.market.clock.advance(EPOCH_MS);
  await scene.cycle();
});
afterAll(() => scene.close());

const ask = (words: readonly string[], storeFile = scene.storeFile) => ({
  words,
  store: { address: storeFile, variable: '--ledger' },
  policyFile: null as string | null,
  keys: async () => [scene.market.validator],
  published: null as PublishedWeights | null,
});

const run = (...words: string[]) => runAs(ask(words));

async function runAs(asked: ReturnType<typeof ask>) {
  const said = { out: '', err: '' };
  const isWell = await runEvidenceCommand(asked, {
    print: (text) => {
      said.out += text;
    },
    complain: (text) => {
      said.err += text;
    },
  });
  return { isWell, ...said };
}

const shown = async () => (await scene.market.call('GET', '/latest-set-weights')).body;
const epochs = () => scene.store.selectFrom('epochs').selectAll().orderBy('number').execute();

describe('a validator', () => {
  it('turns checks into weights that the central API publishes', async () => {
    const all = await epochs();
    const [first] = all;
    expect(all.map(({ state }) => state)).toEqual(Array(3).fill('confirmed'));
    expect(JSON.parse(first?.payload_json ?? '')).toMatchObject({
      uids: [0, 1],
      // The burn recipient gets the pool without points.
      weights: [52_428, 13_107],
    });
    const { validator_key: key, ...payload } = await shown();
    expect(key).toBe(scene.market.validator.hotkey);
    expect(payload).toEqual(JSON.parse(all[2]?.payload_json ?? ''));
  });

  it('gives simulated GPUs no weight outside a local marketplace, even if they pass', async () => {
    const other = await createValidatorScene({ embedded: false });
    await other.cycle();
    expect((await other.market.call('GET', '/latest-set-weights')).body).toMatchObject({
      uids: [0],
      weights: [65_535],
    });
    await other.close();
  });
});

describe('explain', () => {
  it('explains an executor’s score and how to raise it', async () => {
    const { isWell, out } = await run('explain', scene.node.id);
    expect(isWell).toBe(true);
    for (const line of [
      /^Epoch 3 of 2027-\S+Z, confirmed; policy [0-9a-f]{64}$/m,
      /^uid 1 has weight \d+ in epoch 3, for 1 executor\.$/m,
      /^ {2}unit +4 USD\/h {2}2 x NVIDIA H100 80GB HBM3 at 2$/m,
      /^ {2}uptime +x 0\.05\d+ {2}2 of 7200 good minutes$/m,
      /^ {2}while idle +\d+, 100\.00 % of a pool with 20 % of all weight$/m,
      /^ {2}eligible +x 0 +its checks failed$/m,
      /^ {2}- Pass the checks/m,
      /^ {2}- Deposit collateral/m,
      /^ {2}- Keep the node up: 7198 more good minutes/m,
      /^Failed checks that count:\n {2}container_start CONTAINER_START_FAILED: .+\n.+\n {4}Run `docker run/m,
      /^Failed checks that are only recorded:\n {2}collateral /m,
    ]) {
      expect(out).toMatch(line);
    }
  });

  it('fails for an unknown executor', async () => {
    const { isWell, out, err } = await run('explain', UNKNOWN);
    expect([isWell, out]).toEqual([
      false,
      `executor ${UNKNOWN} was measured in no cycle of epoch 3, the last one\n`,
    ]);
    expect(err).toMatch(/no check of .+ is on record/);
  });
});

let copies = 0;

/** Copies the scene's store so that a test can change it. */
async function copyOfStore() {
  copies += 1;
  const storeFile = `${scene.storeFile}.${copies}`;
  const original = openSqlite(scene.storeFile);
  original.exec(`vacuum into '${storeFile}'`);
  original.close();
  return { storeFile, store: await openEvidenceStore(storeFile) };
}

/** Replaces `before` by `after` in all cycle entries. */
function inEntries(store: ValidatorScene['store'], before: string, after: string) {
  return store
    .updateTable('cycle_entries')
    .set((eb) => ({
      entry_json: eb.fn<string>('replace', ['entry_json', eb.val(before), eb.val(after)]),
    }))
    .execute();
}

/**
 * Recomputes the epoch with the uids of two hotkeys exchanged, as an attacker would who can write to the store but
 * lacks the key.
 */
async function computedAnew(store: ValidatorScene['store']): Promise<void> {
  const { hotkey } = scene.market.validator;
  const neurons = [
    { uid: 1, hotkey },
    { uid: 0, hotkey: scene.market.provider.hotkey },
  ];
  const stranger = createSigner(new Uint8Array(32).fill(9));
  const epochs = createEpochs({
    store,
    clock: scene.market.clock,
    policy: goldenPolicy(),
    embedded: true,
    cycleMs: 60_000,
    epochMs: 0,
    retentionDays: 14,
    trusted: [{ hotkey }],
    log: createLog({ name: 'test', level: 'silent' }),
    signer: { hotkey, sign: stranger.sign },
    metagraph: { read: async () => ({ block: null, neurons }) },
  });
  await store
    .insertInto('cycles')
    .values({ number: 99, ended_ms: scene.market.clock.now() })
    .execute();
  expect(await epochs.computeDue()).toBe(true);
}

describe('replay', () => {
  it('recomputes stored weights byte for byte and judges the documents again', async () => {
    for (const epoch of await epochs()) {
      const { isWell, out, err } = await run('replay', String(epoch.number));
      expect([isWell, err]).toEqual([true, '']);
      expect(out.split('\n')[0]).toBe(epoch.payload_json);
      expect(out).toContain(`result ${epoch.result_hash}\n`);
      expect(out).toContain('identical, byte for byte; ');
    }
    expect((await run('replay', '9')).err).toBe('there is no epoch 9: the last is 3\n');
    expect((await run('replay')).out).toBe((await run('replay', '3')).out);
  });

  it.each<[string, number, (store: ValidatorScene['store']) => Promise<unknown>, RegExp]>([
    [
      'other weights',
      1,
      (store) =>
        store
          .updateTable('epochs')
          .set((eb) => ({
            payload_json: eb.fn<string>('replace', [
              'payload_json',
              eb.val('13107'),
              eb.val('13108'),
            ]),
          }))
          .execute(),
      /^uid 1 was posted with weight 13108, the recomputed weight is 13107$/m,
    ],
    [
      'another verdict in a cycle',
      2,
      (store) => inEntries(store, '"ok"', '"failed"'),
      /^input_hash was .+\n[\s\S]*^cycle 1, executor .+the cycle entry differs: verdict was "failed", recomputed "ok"/m,
    ],
    [
      'a longer uptime than the earlier cycles contain',
      3,
      (store) => inEntries(store, '"uptime_minutes":2', '"uptime_minutes":9'),
      /^input_hash was .+\n[\s\S]*the cycle entry differs/m,
    ],
    [
      'missing documents that were not pruned',
      1,
      (store) => store.deleteFrom('evidence').execute(),
      /^cycle 1, executor .+: the document is missing$/m,
    ],
    [
      'an input that was altered',
      2,
      (store) => store.updateTable('epochs').set({ input_json: '{}' }).execute(),
      /^epoch 2: epochs\.input_json was altered .+cannot be recomputed/,
    ],
    [
      'other cycles in the input',
      2,
      (store) =>
        store
          .updateTable('epochs')
          .set((eb) => ({
            input_json: eb.fn<string>('replace', [
              'input_json',
              eb.val('"cycles":[1,2]'),
              eb.val('"cycles":[2]'),
            ]),
          }))
          .execute(),
      /^input_hash was .+: epochs\.input_json of this epoch, or a cycle that it names, was altered/m,
    ],
    [
      'an unsigned epoch',
      1,
      (store) => store.updateTable('epochs').set({ signature: null }).execute(),
      /^it is not signed/m,
    ],
    [
      'an epoch whose time differs from the signed one',
      1,
      (store) =>
        store
          .updateTable('epochs')
          .set((eb) => ({ computed_ms: eb('computed_ms', '+', 60_000) }))
          .execute(),
      /^its signature is not that of 5/m,
    ],
    ['completely recomputed weights of another program', 4, computedAnew, /^its signature is/m],
    [
      'a missing epoch, whichever epoch is replayed',
      3,
      (store) => store.deleteFrom('epochs').where('number', '=', 2).execute(),
      /^epoch 2: it is missing$/m,
    ],
    [
      'cycles that were deleted',
      1,
      (store) => store.deleteFrom('cycles').execute(),
      /^cycle 1 was deleted/m,
    ],
  ])('detects %s', async (_, epoch, change, complaint) => {
    const { storeFile, store } = await copyOfStore();
    await change(store);
    await store.destroy();
    const replayed = runAs(ask(['replay', String(epoch)], storeFile));
    const said = await replayed.catch((error: Error) => ({ isWell: false, err: error.message }));
    expect(said.isWell).toBe(false);
    expect(said.err).toMatch(complaint);
  });
});

it('replays, explains and exports a store whose documents of passed checks were dropped', async () => {
  const { storeFile, store } = await copyOfStore();
  const { validator: signer, clock } = scene.market;
  const log = createLog({ name: 'test', level: 'silent' });
  const trusted = [{ hotkey: signer.hotkey }];
  const options = { store, signer, trusted, clock, log, policy: goldenPolicy() };
  await createEvidence(options).dropPassed(Number.MAX_SAFE_INTEGER);
  const passed = await store.selectFrom('passed_documents').selectAll().execute();
  await store.destroy();
  expect(passed).toEqual([]);
  const replayed = await runAs(ask(['replay', '1'], storeFile));
  expect([replayed.isWell, replayed.err]).toEqual([true, '']);
  expect(replayed.out).toMatch(/identical, byte for byte; 0 documents judged again, 1 dropped$/m);
  expect(await runAs(ask(['evidence', 'export'], storeFile))).toMatchObject({ isWell: true });
  expect(await runAs(ask(['explain', scene.node.id], storeFile))).toMatchObject({ isWell: true });
});

it('reports altered verdicts in cycles whose documents were dropped', async () => {
  const { storeFile, store } = await copyOfStore();
  const { validator: signer, clock } = scene.market;
  const log = createLog({ name: 'test', level: 'silent' });
  const trusted = [{ hotkey: signer.hotkey }];
  const options = { store, signer, trusted, clock, log, policy: goldenPolicy() };
  await createEvidence(options).dropPassed(Number.MAX_SAFE_INTEGER);
  await inEntries(store, '"verdict":"ok"', '"verdict":"withheld"');
  await store.destroy();
  const { isWell, err } = await runAs(ask(['replay', '1'], storeFile));
  expect([isWell, err]).toEqual([
    false,
    expect.stringMatching(/another verdict or executor than the signed header$/m),
  ]);
});

it('reports altered cycles beside the explanation', async () => {
  const { storeFile, store } = await copyOfStore();
  await inEntries(store, '"gpu_count":2', '"gpu_count":8');
  await store.destroy();
  const { isWell, err } = await runAs(ask(['explain', scene.node.id], storeFile));
  expect([isWell, err]).toEqual([
    false,
    expect.stringMatching(/^The input of the weights was altered/),
  ]);
});

it('reports a missing last check instead of an earlier one', async () => {
  const { storeFile, store } = await copyOfStore();
  const own = store.deleteFrom('evidence').where('executor_id', '=', scene.node.id);
  await own
    .where('seq', '=', (eb) =>
      eb
        .selectFrom('evidence')
        .select((of) => of.fn.max('seq').as('last'))
        .where('executor_id', '=', scene.node.id),
    )
    .execute();
  await store.destroy();
  const { isWell, err } = await runAs(ask(['explain', scene.node.id], storeFile));
  expect([isWell, err]).toEqual([false, expect.stringMatching(/^Its last check .+ is missing$/m)]);
});

describe('a truncated history', () => {
  const published = () =>
    createPublishedWeights(scene.centralUrl, { deadline: AbortSignal.timeout });
  const audits = [['replay'], ['evidence', 'export']];

  it('is not found in a whole store', async () => {
    for (const words of audits) {
      const asked = { ...ask(words), published: published() };
      expect(await runAs(asked)).toMatchObject({ isWell: true, err: '' });
    }
  });

  it('is detected by the weights that the central API has acknowledged', async () => {
    const { storeFile, store } = await copyOfStore();
    // The newest epoch and all that it names, as in an old copy of the store.
    await store.deleteFrom('epochs').where('number', '=', 3).execute();
    await store.deleteFrom('cycles').where('number', '>', 2).execute();
    await store.destroy();
    for (const words of audits) {
      const alone = await runAs(ask(words, storeFile));
      expect([words, alone.isWell]).toEqual([words, true]);
      const { isWell, err } = await runAs({ ...ask(words, storeFile), published: published() });
      expect([isWell, err]).toEqual([
        false,
        expect.stringMatching(
          /^weights of 2027-\S+Z were posted and acknowledged, but no stored epoch is so new/m,
        ),
      ]);
    }
  });

  it('is detected by other weights than the acknowledged ones, and reported as possible if the central API does not answer', async () => {
    const newest = (await epochs()).at(-1);
    const acknowledged = JSON.parse(newest?.payload_json ?? '');
    const other = { ...acknowledged, weights: acknowledged.weights.map(() => 1) };
    const errOf = async (given: PublishedWeights) =>
      (await runAs({ ...ask(['replay']), published: given })).err;
    expect(await errOf(async () => other)).toMatch(/acknowledged with other values than epoch 3/);
    expect(await errOf(() => Promise.reject(new Error('down')))).toMatch(
      /may be missing \(down\)$/m,
    );
    expect(await errOf(async () => null)).toBe('');
  });

  it('is detected by a posted verdict if the newest documents of an executor are replaced by an old chain', async () => {
    const { storeFile, store } = await copyOfStore();
    const old = await store.selectFrom('evidence').selectAll().orderBy('seq').execute();
    const last = old.at(-1);
    await store
      .deleteFrom('evidence')
      .where('seq', '=', last?.seq ?? 0)
      .execute();
    const { executor_id = '', finished_ms = 0 } = old.at(-2) ?? {};
    const head = await store.selectFrom('evidence_heads').selectAll().executeTakeFirstOrThrow();
    const { validator: _, signed_ms: __, signature: ___, ...claim } = head;
    const before = { ...claim, last_seq: (last?.seq ?? 0) - 1, last_id: old.at(-2)?.id ?? '' };
    await store.deleteFrom('evidence_heads').execute();
    // The head that the validator signed before its last document.
    const signed = await signHead(before, scene.market.validator, finished_ms);
    await store.insertInto('evidence_heads').values(signed).execute();
    await store.destroy();
    const { err } = await runAs(ask(['evidence', 'export'], storeFile));
    expect(err).toMatch(
      new RegExp(
        `^evidence of ${executor_id}: a verdict of \\S+Z was posted, but no document`,
        'm',
      ),
    );
  });
});

it('shows the weights under another policy', async () => {
  const policyFile = `${scene.storeFile}.policy.json`;
  writeFileSync(policyFile, JSON.stringify(rewardPolicy({ rates_uusd: {} })));
  const { isWell, out } = await runAs({ ...ask(['replay', '1']), policyFile });
  expect([isWell, out.split('\n').slice(1)]).toEqual([
    true,
    ['uid 0: 52428 -> 65535', 'uid 1: 13107 -> 0', ''],
  ]);
  expect((await runAs({ ...ask(['replay', '9']), policyFile })).err).toMatch(/no epoch 9/);
  await expect(runAs({ ...ask(['explain', UNKNOWN]), policyFile })).rejects.toThrow(/--policy/);
});

it('exports evidence as self-contained lines', async () => {
  const { isWell, out } = await run('evidence', 'export', scene.node.id);
  const lines = out.trim().split('\n');
  expect([isWell, lines.length > 1]).toEqual([true, true]);
  expect(JSON.parse(JSON.parse(lines[0] ?? '').document).executor_id).toBe(scene.node.id);
  expect((await run('evidence', 'export')).out).toBe(out);
  const unknown = await run('evidence', 'export', UNKNOWN);
  expect([unknown.isWell, unknown.out]).toEqual([false, '']);
  expect(unknown.err).toMatch(
    /^evidence of 0{8}.+: neither evidence nor a cycle names this executor/,
  );
});

it('rejects signatures of keys that are not trusted', async () => {
  const keys = async () => [createSigner(new Uint8Array(32).fill(9))];
  const [exported, replayed, explained] = [
    await runAs({ ...ask(['evidence', 'export']), keys }),
    await runAs({ ...ask(['replay']), keys }),
    await runAs({ ...ask(['explain', scene.node.id]), keys }),
  ];
  expect([exported.isWell, replayed.isWell, explained.isWell]).toEqual([false, false, false]);
  const { hotkey } = scene.market.validator;
  expect(exported.err).toContain(`signed by ${hotkey}, which is not trusted at`);
  expect(replayed.err).toContain(`it is signed by ${hotkey}, which is not trusted`);
  expect(replayed.out).toContain('recomputed identical, but its signer is not trusted;');
  expect(explained.err).toMatch(
    /^Its last check .+ is not trustworthy: .+ is not trusted at \S+$/m,
  );
});

it.each<[string[], RegExp]>([
  [['explain'], /^explain takes the id of one EXECUTOR/],
  [['replay', 'abc'], /^replay takes one EPOCH, a number from 1/],
  [['replay', '1', '2'], /^replay takes one EPOCH/],
  [['evidence'], /^evidence takes export/],
  [['evidence', 'export', UNKNOWN, 'x'], /^evidence takes/],
  [['nonsense'], /^unknown command nonsense; see --help/],
  [['exlain', UNKNOWN], /^unknown command exlain .+; did you mean explain\? see --help/],
])('rejects the arguments %j', async (words, usage) => {
  await expect(run(...words)).rejects.toThrow(ConfigError);
  await expect(run(...words)).rejects.toThrow(usage);
});

it('names the address at which there is no evidence store', async () => {
  const output = { print: () => undefined, complain: () => undefined };
  const looking = runEvidenceCommand(ask(['replay', '1'], '/nowhere/ledger.db'), output);
  await expect(looking).rejects.toThrow('no evidence store at /nowhere/ledger.db');
  const otherwise = runAs(ask(['replay', '1'], import.meta.filename));
  await expect(otherwise).rejects.toThrow(
    /evidence-commands.test.ts cannot be read as the evidence store of a validator: /,
  );
});
