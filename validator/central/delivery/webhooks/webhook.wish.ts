/** Which events a webhook is told of. Pure. */
import { z } from 'zod';
import type { Webhook } from '../../platform/database/tables.ts';
import type { AccountEvent } from '../events/event.schemas.ts';

const Names = z.array(z.string());

/** The types that its owner named; none: all. */
export function wishesOf({ events_json: json }: Pick<Webhook, 'events_json'>): string[] {
  return Names.parse(JSON.parse(json));
}

export function wantsEvent(
  webhook: Pick<Webhook, 'events_json'>,
  {
    event_type: type,
    sub_event_type: subType,
  }: Pick<AccountEvent, 'event_type' | 'sub_event_type'>,
): boolean {
  const wishes = wishesOf(webhook);
  return wishes.length === 0 || wishes.includes(type) || wishes.includes(subType);
}
