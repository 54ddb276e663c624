/**
 * The double-entry ledger. The migration moves the balances of accounts and the holds of pods into the ledger. These
 * balances count as granted credit, because payments did not exist before.
 */
import type { SqlDialect } from '../sql-dialects.ts';

/** The largest safe integer of JavaScript. */
const SAFE = '9007199254740991';

export const ledger = ({ int, serial, tableEnd, forbidChanges }: SqlDialect): string[] => [
  `create table ledger_accounts (
    id text primary key,
    debits_posted ${int} not null,
    credits_posted ${int} not null,
    debits_pending ${int} not null,
    constraint ledger_in_range check (
      debits_posted between 0 and ${SAFE} and credits_posted between 0 and ${SAFE}
      and debits_pending between 0 and ${SAFE}
    ),
    constraint ledger_not_negative check (
      not (id like 'user:%' or id like 'granted:%')
      or credits_posted - debits_posted - debits_pending >= 0
    )
  ) ${tableEnd}`,
  `create table ledger_groups (
    id ${serial},
    cause_type text not null,
    cause_id text not null,
    is_once ${int} not null check (is_once in (0, 1)),
    actor text not null,
    request_id text,
    at_ms ${int} not null
  ) ${tableEnd}`,
  'create unique index ledger_groups_once on ledger_groups (cause_type, cause_id) where is_once = 1',
  // No foreign keys to ledger_accounts, because they would lock rows to which most transactions post.
  `create table transfers (
    seq ${serial},
    group_id ${int} not null references ledger_groups (id),
    debit_id text not null,
    credit_id text not null,
    amount_uusd ${int} not null check (amount_uusd > 0 and amount_uusd <= ${SAFE}),
    kind text not null check (kind in ('direct', 'pending', 'post', 'void')),
    pending_seq ${int} references transfers (seq),
    check (debit_id <> credit_id),
    check ((kind in ('post', 'void')) = (pending_seq is not null))
  ) ${tableEnd}`,
  'create index transfers_by_group on transfers (group_id)',
  // The index includes the amounts, so that the sum of an account is computed from the index alone.
  'create index transfers_by_debit on transfers (debit_id, seq, kind, amount_uusd)',
  'create index transfers_by_credit on transfers (credit_id, seq, kind, amount_uusd)',
  'create unique index transfers_resolving on transfers (pending_seq) where pending_seq is not null',
  ...forbidChanges('transfers'),
  ...forbidChanges('ledger_groups'),
  ...openingBalances,
  ...openHolds,
  'alter table accounts drop column balance_uusd',
  'drop index pods_pledged',
  'alter table pods drop column hold_uusd',
  `create index pods_pledged on pods
    (account_id, state, price_uusd_per_gpu_hour, gpu_count) where ended_at is null`,
];

/** Sum of the holds of an account's open pods. */
const HELD = `(select coalesce(sum(hold_uusd), 0) from pods
  where pods.account_id = accounts.id and pods.ended_at is null)`;

/** At least the sum of the holds, so that a balance that was lowered manually does not become negative. */
const OPENING = `case when ${HELD} > balance_uusd then ${HELD} else balance_uusd end`;

const openingBalances = [
  `insert into ledger_accounts (id, debits_posted, credits_posted, debits_pending)
    select 'granted:' || id, 0, ${OPENING}, ${HELD} from accounts where ${OPENING} > 0`,
  `insert into ledger_groups (cause_type, cause_id, is_once, actor, at_ms)
    select 'opening-balance', id, 1, 'system', updated_at from accounts where ${OPENING} > 0`,
  `insert into transfers (group_id, debit_id, credit_id, amount_uusd, kind)
    select ledger_groups.id, 'platform:credits_granted', 'granted:' || accounts.id, ${OPENING}, 'direct'
    from accounts join ledger_groups
      on ledger_groups.cause_type = 'opening-balance' and ledger_groups.cause_id = accounts.id`,
  `insert into ledger_accounts (id, debits_posted, credits_posted, debits_pending)
    select 'platform:credits_granted', sum(amount_uusd), 0, 0 from transfers having count(*) > 0`,
];

const openHolds = [
  'alter table pods add column hold_id text',
  `insert into ledger_groups (cause_type, cause_id, is_once, actor, at_ms)
    select 'pod-hold', id, 1, 'system', created_at from pods where ended_at is null and hold_uusd > 0`,
  `insert into transfers (group_id, debit_id, credit_id, amount_uusd, kind)
    select ledger_groups.id, 'granted:' || pods.account_id, 'clearing:usage', pods.hold_uusd, 'pending'
    from pods join ledger_groups
      on ledger_groups.cause_type = 'pod-hold' and ledger_groups.cause_id = pods.id`,
  `update pods set hold_id = (select cast(ledger_groups.id as text) from ledger_groups
    where ledger_groups.cause_type = 'pod-hold' and ledger_groups.cause_id = pods.id)`,
];
