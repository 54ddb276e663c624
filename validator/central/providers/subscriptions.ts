/** Who wants to hear of which GPU types, for whoever tells them. */
import { listSubscribedTypes, listSubscribers } from './subscription.store.ts';

export const subscriptions = { types: listSubscribedTypes, subscribers: listSubscribers };
