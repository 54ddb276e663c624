/** What surrounds a balance, put together: notifications, thresholds, top-ups, transfers, rates. */
import type { HttpServer } from '#shared/http/server.ts';
import { registerAlphaRoutes } from './alpha/alpha.routes.ts';
import { createAlpha } from './alpha/alpha.service.ts';
import type { Db } from './db/tables.ts';
import { registerLowBalanceRoutes } from './low-balance/low-balance.routes.ts';
import { createLowBalance, forgetLowBalance } from './low-balance/low-balance.service.ts';
import { registerNotificationSettingRoutes } from './notification-settings/notification-setting.routes.ts';
import {
  createNotificationSettings,
  forgetNotificationSetting,
} from './notification-settings/notification-setting.service.ts';
import type { CentralDeps } from './ports.ts';
import type { DueHandlers } from './schedule/schedule.ts';

export type AroundBalance = ReturnType<typeof createAroundBalance>;

/** Nothing runs and nothing is registered yet. */
export function createAroundBalance(deps: CentralDeps) {
  const { db, clock, random, alphaRates = null } = deps.ports;
  const { balanceOf, mails } = deps;
  const lowBalance = createLowBalance({ db, clock, random, mails });
  const dueHandlers: DueHandlers = {};

  return {
    /** Routes below /api. */
    registerApi(api: HttpServer): void {
      registerNotificationSettingRoutes(api, createNotificationSettings({ db, clock, random }));
      registerLowBalanceRoutes(api, lowBalance);
      registerAlphaRoutes(api, createAlpha(alphaRates));
    },

    /** What it does when its time has come. */
    dueHandlers,

    /** What follows from a spend, in its transaction. */
    async afterSpend(tx: Db, accountId: string): Promise<void> {
      const { posted, held, burnPerHour } = await balanceOf(tx, accountId);
      await lowBalance.watch(tx, accountId, { available: posted - held, burnPerHour });
    },

    /** Removes what is kept for an account that is being deleted. */
    async forget(tx: Db, accountId: string): Promise<void> {
      await forgetNotificationSetting(tx, accountId);
      await forgetLowBalance(tx, accountId);
    },
  };
}
