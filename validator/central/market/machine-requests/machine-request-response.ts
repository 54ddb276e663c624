/** Maps machine requests between rows, responses for renters and responses of the portal. Pure. */
import { microToUsd, usdToMicro } from '#shared/api/money.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { MachineRequest } from '../../platform/database/tables.ts';
import type {
  MachineRequestCreate,
  MachineRequestResponse,
  PortalRequest,
} from './machine-request.schemas.ts';

/** Returns the row of a new, pending request. */
export function newRequest(
  body: MachineRequestCreate,
  { id, accountId, nowMs }: { id: string; accountId: string; nowMs: number },
): MachineRequest {
  const { hourly_budget: budget } = body;
  return {
    id,
    account_id: accountId,
    gpu_class: body.gpu_class,
    gpu_count: body.gpu_count ?? null,
    budget_uusd_per_hour: budget === undefined ? null : usdToMicro(budget),
    country: body.country ?? null,
    min_vram_gb: body.min_vram_gb ?? null,
    notes: body.notes ?? null,
    notify: body.notify === false ? 0 : 1,
    state: 'pending',
    fulfilled_executor_id: null,
    created_at: nowMs,
    updated_at: nowMs,
  };
}

/** Returns the request as providers see it, without the renter's identity. */
export function toPortalRequest(row: MachineRequest): PortalRequest {
  const {
    user_id: _user,
    min_vram_gb: _memory,
    notify: _notify,
    updated_at: _time,
    ...shown
  } = toResponse(row);
  return shown;
}

/** Returns the request as its renter sees it. */
export function toResponse(row: MachineRequest): MachineRequestResponse {
  const { budget_uusd_per_hour: budget } = row;
  return {
    id: row.id,
    user_id: row.account_id,
    gpu_class: row.gpu_class,
    gpu_count: row.gpu_count,
    hourly_budget: budget === null ? null : microToUsd(budget),
    country: row.country,
    min_vram_gb: row.min_vram_gb,
    notes: row.notes,
    notify: row.notify === 1,
    status: row.state,
    fulfilled_executor_id: row.fulfilled_executor_id,
    created_at: naiveUtc(row.created_at),
    updated_at: naiveUtc(row.updated_at),
  };
}
