/** The metering job reads the billable meters by account, and posts by the hour instead of by the last settlement. */
import type { SqlDialect } from '../sql-dialects.ts';

export const hourlyPostings = (_: SqlDialect): string[] => ['drop index usage_meters_due'];
