/** How a machine request comes from the wire and goes back (contract 8). Pure. */

import { microToUsd, usdToMicro } from '#shared/api/money.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { MachineRequest } from '../../platform/database/tables.ts';
import type { MachineRequestCreate, MachineRequestResponse } from './machine-request.schemas.ts';
import type { PortalRequest } from './portal-request.schemas.ts';

/** A pending one, as it is stored. */
export function newRequest(
  body: MachineRequestCreate,
  made: { id: string; accountId: string; nowMs: number },
): MachineRequest {
  const { hourly_budget: budget } = body;
  return {
    id: made.id,
    account_id: made.accountId,
    gpu_class: body.gpu_class,
    gpu_count: body.gpu_count ?? null,
    budget_uusd_per_hour: budget === undefined ? null : usdToMicro(budget),
    country: body.country ?? null,
    min_vram_gb: body.min_vram_gb ?? null,
    notes: body.notes ?? null,
    notify: body.notify === false ? 0 : 1,
    state: 'pending',
    fulfilled_executor_id: null,
    created_at: made.nowMs,
    updated_at: made.nowMs,
  };
}

/** As providers see it: nothing says whose it is. */
export function toPortalRequest(row: MachineRequest): PortalRequest {
  const { id, gpu_class, gpu_count, hourly_budget, country, notes, status, ...rest } =
    toResponse(row);
  const { fulfilled_executor_id, created_at } = rest;
  const asked = { gpu_class, gpu_count, hourly_budget, country, notes };
  return { id, ...asked, status, fulfilled_executor_id, created_at };
}

/** As its renter sees it. */
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
