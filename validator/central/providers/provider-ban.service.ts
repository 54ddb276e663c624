/**
 * Bans of providers by the operator. Nodes of a banned provider cannot be rented, the provider receives no payouts, and
 * the validator fails its nodes. Running pods continue, so that renters keep their data.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { recordAudit, requireReason } from '../platform/audit/audit.service.ts';
import type { Db, Provider } from '../platform/database/tables.ts';
import { lockRow } from '../platform/database/transactions.ts';
import { findProvider, findProviderByHotkey, updateProvider } from './provider.store.ts';

export type BanRequest = {
  hotkey: string;
  /** Reason for the action, stored in the audit entry; required. */
  reason: string;
  /** Name of a login on the host, or id of an account; stored in the audit entry. */
  operator: string;
};

export type ProviderBans = ReturnType<typeof createProviderBans>;

/**
 * Creates the bans. The methods run in the caller's transaction and return true if the state changed. Each call writes
 * one audit entry.
 */
export function createProviderBans({ clock }: { clock: Clock }) {
  async function change(
    tx: Db,
    { hotkey, reason, operator }: BanRequest,
    action: 'provider.ban' | 'provider.unban',
  ): Promise<boolean> {
    const text = requireReason(reason);
    const { id } = await requireProvider(tx, hotkey);
    await lockRow(tx, 'providers', id);
    const isBanned = (await findProvider(tx, id))?.banned_at != null;
    const nowMs = clock.now();
    const hasChanged = isBanned !== (action === 'provider.ban');
    if (hasChanged) {
      const bannedAt = action === 'provider.ban' ? nowMs : null;
      await updateProvider(tx, id, { banned_at: bannedAt, updated_at: nowMs });
    }
    await recordAudit(tx, {
      operator,
      action,
      subject_type: 'provider',
      subject_id: id,
      reason: text,
      at_ms: nowMs,
    });
    return hasChanged;
  }

  return {
    /** Throws 400 `bad_request` without a reason, and 404 `not_found` for an unknown hotkey. */
    ban: (tx: Db, request: BanRequest) => change(tx, request, 'provider.ban'),
    /** Throws the same errors as `ban`. The nodes are offered again once the validator has verified them. */
    unban: (tx: Db, request: BanRequest) => change(tx, request, 'provider.unban'),
  };
}

async function requireProvider(tx: Db, hotkey: string): Promise<Provider> {
  const provider = await findProviderByHotkey(tx, hotkey);
  if (provider !== undefined) return provider;
  throw new ApiError('not_found', `No provider has the hotkey ${hotkey}`, {
    hint: 'State the ss58 address with which the provider logs in.',
  });
}
