/** Random postings to a money ledger; each result is compared with a model of the balances. */
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { auditLedger } from '../../validator/central/money/ledger/audit.service.ts';
import type {
  Cause,
  LedgerAccount,
  Leg,
} from '../../validator/central/money/ledger/double-entry.ts';
import {
  placeHold,
  settleHold,
  voidHold,
} from '../../validator/central/money/ledger/hold.service.ts';
import {
  CauseTaken,
  postGroup,
  postGroups,
} from '../../validator/central/money/ledger/ledger.service.ts';
import {
  grantedAccount,
  lockedWalletOf,
  paidAccount,
  spendLegs,
  walletOf,
} from '../../validator/central/money/ledger/wallet.service.ts';
import type { Database, Db } from '../../validator/central/platform/database/tables.ts';

const RENTERS = ['ada', 'ben', 'cem', 'dua', 'eve'];
const PROVIDERS: readonly LedgerAccount[] = ['provider:north', 'provider:south'];
const MOST_UUSD = 5_000_000;
/** Provider's share of spent money, in percent. */
const PROVIDER_SHARE = 95;
const GROUPS_AT_ONCE = 20;

type Model = { paid: number; granted: number; holds: Map<string, [granted: number, paid: number]> };

/** Thrown to roll a transaction back before its end, as the death of the process would. */
class Died extends Error {}

/** Runs one random posting at a time against `db`, which is empty and owned by the caller. */
export function createLedgerWorld(db: Database, random: Random) {
  const models = new Map<string, Model>(
    RENTERS.map((id) => [id, { paid: 0, granted: 0, holds: new Map() }]),
  );
  const known: Cause[] = [];
  let step = 0;

  const pick = <T>(from: readonly T[]): T => {
    const one = from[random.int(from.length)];
    if (one === undefined) throw new Error('cannot choose from an empty list');
    return one;
  };
  const amount = () => 1 + random.int(MOST_UUSD);
  const inTx = <T>(work: (tx: Db) => Promise<T>) => db.transaction().execute(work);

  function cause(): Cause {
    const made = { type: 'step', id: `${step}-${random.uuid()}`, once: true };
    return { ...made, actor: 'system', requestId: null, atMs: step };
  }

  function modelOf(id: string): Model {
    const model = models.get(id);
    if (model === undefined) throw new Error(`no renter ${id}`);
    return model;
  }

  /** Granted and paid credit that is not held. */
  function freeOf({ paid, granted, holds }: Model): [granted: number, paid: number] {
    let [heldOfGranted, heldOfPaid] = [0, 0];
    for (const [ofGranted, ofPaid] of holds.values()) {
      heldOfGranted += ofGranted;
      heldOfPaid += ofPaid;
    }
    return [granted - heldOfGranted, paid - heldOfPaid];
  }

  function take(model: Model, uusd: number): [granted: number, paid: number] {
    const [granted] = freeOf(model);
    const ofGranted = Math.min(granted, uusd);
    return [ofGranted, uusd - ofGranted];
  }

  /** Splits spent money between provider and platform. */
  function earned(uusd: number): Leg[] {
    const share = Math.floor((uusd * PROVIDER_SHARE) / 100);
    const legs: Leg[] = [
      { debit: 'clearing:usage', credit: pick(PROVIDERS), amountUusd: share },
      { debit: 'clearing:usage', credit: 'platform:fee', amountUusd: uusd - share },
    ];
    return legs.filter(({ amountUusd }) => amountUusd > 0);
  }

  async function refused(work: Promise<unknown>): Promise<void> {
    const problem = await work.then(
      () => null,
      (error) => error,
    );
    if (problem instanceof ApiError && problem.code === 'insufficient_balance') return;
    throw new Error(`step ${step}: not refused`, { cause: problem });
  }

  async function add(id: string, kind: 'paid' | 'granted'): Promise<void> {
    const uusd = amount();
    const leg: Leg =
      kind === 'paid'
        ? { debit: 'external:topup', credit: paidAccount(id), amountUusd: uusd }
        : { debit: 'platform:credits_granted', credit: grantedAccount(id), amountUusd: uusd };
    const because = cause();
    await inTx((tx) => postGroup(tx, [leg], because));
    known.push(because);
    modelOf(id)[kind] += uusd;
  }

  async function spend(id: string): Promise<void> {
    const model = modelOf(id);
    const uusd = amount();
    const work = inTx(async (tx) => {
      const legs = spendLegs(await lockedWalletOf(tx, id), uusd, 'clearing:usage');
      await postGroup(tx, [...legs, ...earned(uusd)], cause());
    });
    const [granted, paid] = freeOf(model);
    if (uusd > granted + paid) return refused(work);
    await work;
    const [ofGranted, ofPaid] = take(model, uusd);
    model.granted -= ofGranted;
    model.paid -= ofPaid;
  }

  async function hold(id: string): Promise<void> {
    const model = modelOf(id);
    const uusd = amount();
    const work = inTx((tx) => placeHold(tx, id, uusd, cause()));
    const [granted, paid] = freeOf(model);
    if (uusd > granted + paid) return refused(work);
    const taken = take(model, uusd);
    model.holds.set(await work, taken);
  }

  async function endHold(id: string): Promise<void> {
    const model = modelOf(id);
    const [holdId, held] = [...model.holds][0] ?? [];
    if (holdId === undefined || held === undefined) return;
    const [ofGranted, ofPaid] = held;
    const posted = random.int(2) === 0 ? 0 : random.int(ofGranted + ofPaid + 1);
    await inTx(async (tx) => {
      if (posted === 0) return voidHold(tx, holdId, cause());
      await settleHold(tx, holdId, posted, cause());
      await postGroup(tx, earned(posted), cause());
    });
    // Resolving the hold again has no effect or is rejected.
    await inTx((tx) => voidHold(tx, holdId, cause()));
    const again = inTx((tx) => settleHold(tx, holdId, 1, cause()));
    if ((await again.catch((error) => error)) === undefined)
      throw new Error('a hold was settled twice');
    model.holds.delete(holdId);
    model.granted -= Math.min(posted, ofGranted);
    model.paid -= Math.max(0, posted - ofGranted);
  }

  async function pass(id: string): Promise<void> {
    const to = pick(RENTERS.filter((other) => other !== id));
    const uusd = amount();
    const leg = { debit: paidAccount(id), credit: paidAccount(to), amountUusd: uusd };
    const work = inTx((tx) => postGroup(tx, [leg], cause()));
    const [, paid] = freeOf(modelOf(id));
    if (uusd > paid) return refused(work);
    await work;
    modelOf(id).paid -= uusd;
    modelOf(to).paid += uusd;
  }

  async function many(): Promise<void> {
    const groups = Array.from({ length: 1 + random.int(GROUPS_AT_ONCE) }, () => ({
      renter: pick(RENTERS),
      uusd: amount(),
      cause: cause(),
    }));
    await inTx((tx) =>
      postGroups(
        tx,
        groups.map(({ renter, uusd, cause: because }) => ({
          legs: [{ debit: 'external:topup', credit: paidAccount(renter), amountUusd: uusd }],
          cause: because,
        })),
      ),
    );
    for (const { renter, uusd } of groups) modelOf(renter).paid += uusd;
  }

  /** Posts again with a cause that was used before; the ledger must reject the posting. */
  async function replay(id: string): Promise<void> {
    if (known.length === 0) return;
    const leg: Leg = { debit: 'external:topup', credit: paidAccount(id), amountUusd: amount() };
    const problem = await inTx((tx) => postGroup(tx, [leg], pick(known))).catch((error) => error);
    if (!(problem instanceof CauseTaken))
      throw new Error('a cause was posted twice', { cause: problem });
  }

  /** Rolls a transaction back after some statements: none of these may take effect. */
  async function die(id: string): Promise<void> {
    const leg: Leg = { debit: 'external:topup', credit: paidAccount(id), amountUusd: amount() };
    const work = inTx(async (tx) => {
      await postGroup(tx, [leg], cause());
      await placeHold(tx, id, 1, cause());
      throw new Died();
    });
    if (!((await work.catch((error) => error)) instanceof Died))
      throw new Error('the transaction was not rolled back');
  }

  async function compare(): Promise<void> {
    for (const [id, model] of models) {
      const { paid, granted, held, available } = await walletOf(db, id);
      const [freeGranted, freePaid] = freeOf(model);
      const expected = [model.paid, model.granted, freeGranted + freePaid];
      if (JSON.stringify([paid, granted, available]) !== JSON.stringify(expected)) {
        throw new Error(`step ${step}: ${id} has ${[paid, granted, held]}, not ${expected}`);
      }
    }
  }

  const moves: readonly ((id: string) => Promise<void>)[] = [
    (id) => add(id, 'paid'),
    (id) => add(id, 'granted'),
    spend,
    spend,
    hold,
    hold,
    endHold,
    endHold,
    pass,
    many,
    replay,
    die,
  ];

  return {
    /** Runs one posting and compares every wallet with the model. */
    async step(): Promise<void> {
      step += 1;
      await pick(moves)(pick(RENTERS));
      await compare();
    },

    /** Rejects with all violations that an audit finds. */
    async audit(): Promise<void> {
      const { findings } = await inTx(auditLedger);
      if (findings.length > 0) throw new Error(`step ${step}: ${JSON.stringify(findings)}`);
    },
  };
}
