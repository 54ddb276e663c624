/** Lists the nodes that validators check, and records their verdicts. */
import type { z } from 'zod';
import {
  CheckRequest,
  type ExecutorHealthCheckRequest,
  type ExecutorHealthCheckResponse,
  type ExecutorToCheck,
  type HealthReport,
} from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { finalFees } from '../../money/metering/paid-fees.ts';
import type { Database } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import type { ValidatorIdentity } from '../../platform/identity.ts';
import type { Agents } from '../../platform/ports.ts';
import { recheckDeposit } from '../collateral/collateral.service.ts';
import {
  cardsOfBannedProviders,
  findExecutorAt,
  listPresent,
  requireExecutor,
  type SlotsInUse,
  slotsByExecutor,
} from '../executors/executor.service.ts';
import { uptimeMinutesOf } from '../executors/executor-response.ts';
import { observeReport } from '../executors/reliability.service.ts';
import { maintenanceStarts } from '../notices/notice.service.ts';
import { type PlaceDeps, recheckPlace } from '../places/place.service.ts';
import { firstFailure, recordVerdict } from './record-verdict.ts';

type HealthCheckRequest = z.output<typeof ExecutorHealthCheckRequest>;
type HealthCheckResponse = z.output<typeof ExecutorHealthCheckResponse>;

/** Result if the validator is unreachable, which is not a fault of the node. */
const NOT_CHECKED: HealthCheckResponse = {
  success: false,
  error: 'The validator is unreachable, so the node was not checked',
  details: null,
  reason_code: 'VALIDATOR_UNREACHABLE',
};

/** Slots of a node without a verdict. */
const NO_SLOTS: SlotsInUse = { uuids: [], podIds: [] };

export type ValidatorsDeps = PlaceDeps & {
  db: Database;
  clock: Clock;
  agents: Agents;
  /** Queues an immediate sync of the executor. */
  wake(executorId: string): void;
};

export type Validators = ReturnType<typeof createValidators>;

export function createValidators(deps: ValidatorsDeps) {
  const { db, clock, agents, wake } = deps;

  /** Returns the id in the request, which may be unknown, or the id of the executor at the address. */
  async function idOf(request: HealthCheckRequest): Promise<string> {
    const { executor_id: id, miner_address: address, miner_port: port } = request;
    if (typeof id === 'string') return id;
    const executor = await findExecutorAt(db, address, port);
    if (executor !== undefined) return executor.id;
    throw new ApiError('node_not_found', `There is no node at ${address}:${port}`);
  }

  /** Returns null if the validator is unreachable. Throws `node_not_found` for an unknown id. */
  async function checkNow(id: string, request: HealthCheckRequest): Promise<HealthReport | null> {
    await requireExecutor(db, id);
    try {
      return await agents.checkNow(id, CheckRequest.parse(request));
    } catch (error) {
      if (error instanceof ApiError && error.code === 'upstream_unavailable') return null;
      throw error;
    }
  }

  return {
    async executorsToCheck(): Promise<ExecutorToCheck[]> {
      const present = await listPresent(db);
      const slots = await slotsByExecutor(db);
      const bannedCards = await cardsOfBannedProviders(db);
      const fees = await finalFees(db, clock);
      const maintenances = await maintenanceStarts(db, clock.now());
      return present.map((executor) => {
        const { uuids, podIds } = slots.get(executor.id) ?? NO_SLOTS;
        return {
          id: executor.id,
          executor_ip_address: executor.ip_address,
          executor_ip_port: String(executor.port),
          uptime_in_minutes: uptimeMinutesOf(executor, clock.now()),
          miner_hotkey: executor.miner_hotkey,
          gpu_type: executor.gpu_type,
          gpu_count: executor.gpu_count,
          gpu_uuids: uuids,
          rented: podIds.length > 0,
          pod_ids: podIds,
          price_uusd: executor.price_uusd_per_gpu_hour,
          collateral_deposited: executor.collateral_deposited === 1,
          // Compares the cards, because a banned provider may offer the same cards under another hotkey.
          provider_banned: executor.banned_at !== null || uuids.some((id) => bannedCards.has(id)),
          paid_fees_uusd: fees.get(executor.id) ?? 0,
          extra_incentive_eligible: executor.chat_user_id !== null,
          maintenance_ms: maintenances.get(executor.id) ?? null,
        };
      });
    },

    /**
     * Records the report in the request. Without a report, requests a check now. Throws `forbidden` for an unsigned
     * report.
     */
    async healthCheck(
      { hotkey, accountId }: ValidatorIdentity,
      request: HealthCheckRequest,
    ): Promise<HealthCheckResponse> {
      if (accountId !== null && request.report != null) {
        throw new ApiError('forbidden', 'A report must be signed by the validator', {
          hint: 'Omit the report to run the check now.',
        });
      }
      const id = await idOf(request);
      const report = request.report ?? (await checkNow(id, request));
      if (report === null) return NOT_CHECKED;
      await db.transaction().execute(async (tx) => {
        await lockRow(tx, 'executors', id);
        const executor = await requireExecutor(tx, id);
        const nowMs = clock.now();
        const observed = await observeReport(tx, executor, report, nowMs);
        await recordVerdict(tx, { executor, validatorHotkey: hotkey, report, observed, nowMs });
        await recheckDeposit(tx, id);
        const roundTrip = report.round_trip ?? null;
        await recheckPlace(tx, deps, executor, { validator: hotkey, roundTrip });
      });
      const failure = firstFailure(report);
      // Pods on an unreachable node may have to end (pods/pod-contact.ts).
      if (report.inventory === null) wake(id);
      return {
        success: report.verdict === 'verified',
        error: failure?.message ?? null,
        details: { executor_id: id, verdict: report.verdict },
        reason_code: failure?.reason_code ?? null,
      };
    },
  };
}
