import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ExecutorsToCheck } from '#shared/api/central/validator-routes.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import {
  createPostgresDatabase,
  onPostgres,
} from '../../../../test/fakes/scenes/central-database.ts';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { createValidatorScene, EPOCH_MS } from '../../../../test/fakes/scenes/validator-scene.ts';
import { factsOf, resultOf } from '../../../../test/fixtures/check-facts.ts';
import { entryOf } from '../../../../test/fixtures/cycle-set.ts';
import { runEvidenceCommand } from '../../../weights/evidence-commands.ts';
import { scoresOf } from '../../../weights/points.ts';
import { DEFAULT_POLICY_FILE, readWeightPolicy } from '../../../weights/weight-policy.ts';
import {
  createFileCollateralFeed,
  createHttpCollateralFeed,
} from '../../platform/adapters/collateral-feed.ts';
import { openCentralDatabase } from '../../platform/database/database.ts';
import { runCollateralCommand } from './collateral-command.ts';

const folder = mkdtempSync(join(tmpdir(), 'podwright-collateral-'));
let target: string;
let market: TestMarket;
let feed: string[] | Error = [];
beforeAll(async () => {
  target = onPostgres() ? await createPostgresDatabase() : join(folder, 'central.db');
  market = await createTestMarket({
    db: await openCentralDatabase(target),
    collateralFeed: {
      async subjects() {
        if (feed instanceof Error) throw feed;
        return feed.toSorted();
      },
    },
  });
});
afterAll(async () => {
  await market?.close();
  rmSync(folder, { recursive: true });
});

async function run(...args: string[]) {
  const written = { out: '', err: '' };
  const isDone = await runCollateralCommand(
    { args, usualDatabase: target },
    {
      clock: market.clock,
      print: (text) => {
        written.out += text;
      },
      complain: (text) => {
        written.err += text;
      },
    },
  );
  return { isDone, ...written };
}

/** Ids of the offered nodes with a deposit. */
async function deposited(): Promise<string[]> {
  const { body } = await market.call('GET', '/executors?collateral_deposited=true');
  return body.map(({ id }: { id: string }) => id);
}

/** Returns the node as the validator receives it. */
async function toCheck(id: string) {
  const listed = ExecutorsToCheck.parse((await market.asValidator('/executors', {})).body);
  const found = listed.find((executor) => executor.id === id);
  if (found === undefined) throw new Error('not listed');
  return found;
}

describe('a deposit that the operator records', () => {
  it('makes its node pass the filter and the check and earn the full weight, until the deposit is removed', async () => {
    const { id } = await market.verifiedNode();
    const policy = readWeightPolicy(DEFAULT_POLICY_FILE);
    const effects = async () => {
      const collateral = (await toCheck(id)).collateral_deposited === true;
      const entry = entryOf(1, { collateral });
      return {
        isListed: (await deposited()).includes(id),
        check: resultOf('collateral', factsOf({ collateral })).reason_code,
        factor: scoresOf({ number: 1, entries: [entry] }, policy, false)[0]?.factors.collateral,
      };
    };
    const without = { isListed: false, check: 'COLLATERAL_MISSING', factor: 500_000 };
    expect(await effects()).toEqual(without);
    expect(await run('add', id, 'paid', 'by', 'wire')).toMatchObject({ isDone: true, err: '' });
    expect(await effects()).toEqual({ isListed: true, check: null, factor: 1_000_000 });
    const list = (await run('list')).out;
    expect(JSON.parse(list)).toMatchObject({
      subject: id,
      source: 'operator',
      note: 'paid by wire',
    });
    expect(await run('remove', id)).toMatchObject({ isDone: true });
    expect(await effects()).toEqual(without);
  });

  it('covers all nodes of a provider, including nodes that are added later', async () => {
    const first = await market.verifiedNode();
    await run('add', market.provider.hotkey, 'frame contract');
    const second = await market.verifiedNode();
    expect(await deposited()).toEqual(expect.arrayContaining([first.id, second.id]));
    await run('remove', market.provider.hotkey);
    expect(await deposited()).toEqual([]);
  });

  it.each([
    ['add', '00000000-0000-4000-8000-000000000000', 'note'],
    ['remove', '00000000-0000-4000-8000-000000000000'],
  ])('is not changed by `%s` for an unknown subject', async (...args) => {
    const { isDone, out, err } = await run(...args);
    expect([isDone, out, err !== '']).toEqual([false, '', true]);
  });

  it.each([
    [['add', 'not an id', 'note']],
    [['add', '00000000-0000-4000-8000-000000000000']],
    [['list', 'all']],
    [['forget']],
    [[]],
    [['list', '--database', 'postgres://server/db']],
    [['list', '--unknown']],
  ])('is refused with a reason: %j', async (args) => {
    await expect(run(...args)).rejects.toThrow(ConfigError);
  });
});

describe('the feed of deposits', () => {
  it('replaces the deposits of the feed, and keeps the operator’s deposits', async () => {
    const [one, two, three] = [
      await market.verifiedNode(),
      await market.verifiedNode(),
      await market.verifiedNode(),
    ].map(({ id }) => id) as [string, string, string];
    await run('add', three, 'by hand');
    feed = [one, three, '00000000-0000-4000-8000-000000000001'];
    await market.central.pollCollateral();
    expect((await deposited()).toSorted()).toEqual([one, three].toSorted());
    feed = [two];
    await market.central.pollCollateral();
    expect((await deposited()).toSorted()).toEqual([two, three].toSorted());
    feed = new Error('no answer');
    await expect(market.central.pollCollateral()).rejects.toThrow('no answer');
    expect((await deposited()).toSorted()).toEqual([two, three].toSorted());
    feed = [];
    await market.central.pollCollateral();
    expect(await deposited()).toEqual([three]);
  });

  it('determines the result of the check and the factor of a validator', async () => {
    let deposits: string[] = [];
    const collateralFeed = { subjects: async () => deposits };
    const scene = await createValidatorScene({ overrides: { collateralFeed } });
    const provider = await scene.market.logIn();
    /** Returns the result of the check that the provider receives, and the factor of the last epoch. */
    const effects = async () => {
      for (const _ of ['checked', 'weighed']) {
        await scene.cycle();
        await scene.market.clock.advance(EPOCH_MS);
      }
      const path = `/executors/${scene.node.id}/verification`;
      const { checks } = (await scene.market.portal('GET', path, { token: provider })).body.data;
      let explanation = '';
      const command = {
        words: ['explain', scene.node.id],
        store: { address: scene.storeFile, variable: '--ledger' },
        policyFile: null,
        published: null,
        keys: async () => [scene.market.validator],
      };
      const print = (text: string) => {
        explanation += text;
      };
      expect(await runEvidenceCommand(command, { print, complain: print })).toBe(true);
      return {
        check: checks.find(({ name }: { name: string }) => name === 'collateral')?.passed,
        factor: /^ {2}collateral +x (\S+) +(\S+)$/m.exec(explanation)?.slice(1),
      };
    };
    try {
      expect(await effects()).toEqual({ check: false, factor: ['0.500000', 'none'] });
      deposits = [scene.market.provider.hotkey];
      await scene.market.central.pollCollateral();
      expect(await effects()).toEqual({ check: true, factor: ['1.000000', 'deposited'] });
    } finally {
      await scene.close();
    }
  });

  const ID = '11111111-2222-4333-8444-555555555555';
  const DOCUMENT = JSON.stringify({ deposits: [{ executor_id: ID }, { executor_id: ID }] });

  it('is read from a file with each poll', async () => {
    const path = join(folder, 'deposits.json');
    writeFileSync(path, DOCUMENT);
    const source = createFileCollateralFeed(path);
    expect(await source.subjects()).toEqual([ID]);
    writeFileSync(path, '{"deposits":[]}');
    expect(await source.subjects()).toEqual([]);
    writeFileSync(path, '{"deposits":[{"executor_id":"x"}]}');
    await expect(source.subjects()).rejects.toThrow('deposits.0');
  });

  it.each(['', 'null', '{"deposits":[{"executor_id":"x"}]}', '{"deposits":[],"more":1}'])(
    'makes the start fail if the file contains %j',
    (content) => {
      const path = join(folder, 'wrong.json');
      writeFileSync(path, content);
      expect(() => createFileCollateralFeed(path)).toThrow(`CENTRAL_COLLATERAL_FEED: ${path}`);
    },
  );

  it('is read over HTTP; a failed or oversized answer changes nothing', async () => {
    const answers = [
      [200, DOCUMENT],
      [500, DOCUMENT],
      [200, ' '.repeat(5_000_000)],
    ] as const;
    let at = 0;
    const server = createServer((_, response) => {
      const [status, text] = answers[at++] ?? [404, ''];
      response.writeHead(status).end(text);
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const { port } = server.address() as AddressInfo;
    try {
      const url = `http://127.0.0.1:${port}/`;
      const source = createHttpCollateralFeed({ url, clock: systemClock });
      expect(await source.subjects()).toEqual([ID]);
      await expect(source.subjects()).rejects.toThrow('500');
      await expect(source.subjects()).rejects.toThrow();
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});
